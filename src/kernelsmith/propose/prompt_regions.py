"""The regions of a program that may be edited, as its EVOLVE-BLOCK markers draw them."""

from dataclasses import dataclass

START, END = "EVOLVE-BLOCK-START", "EVOLVE-BLOCK-END"


@dataclass(frozen=True, slots=True, kw_only=True)
class Regions:
    """A program cut at its markers: ``frozen[0] open[0] frozen[1] open[1] ... frozen[n]``."""

    frozen: tuple[tuple[str, ...], ...]
    """Lines that stay, marker lines included; one part more than ``open`` has."""
    open: tuple[tuple[str, ...], ...]
    """Lines between a start and its end."""

    def __post_init__(self) -> None:
        if not self.open or len(self.frozen) != len(self.open) + 1:
            raise ValueError("regions have a frozen part before, between and after")

    def with_open(self, parts: tuple[tuple[str, ...], ...]) -> str:
        """The program with other lines in its regions."""
        lines = list(self.frozen[0])
        for inside, after in zip(parts, self.frozen[1:], strict=True):
            lines += [*inside, *after]
        return "\n".join(lines)

    def only_open(self) -> str:
        """The regions alone, each between its markers."""
        lines: list[str] = []
        for before, inside, after in zip(self.frozen[:-1], self.open, self.frozen[1:], strict=True):
            lines += [before[-1], *inside, after[0]]
        return "\n".join(lines)


def regions_of(source: str) -> Regions | None:
    """Cut at the markers; none where there are none, or they do not come in pairs."""
    frozen: list[tuple[str, ...]] = []
    opened: list[tuple[str, ...]] = []
    lines: list[str] = []
    inside = False
    for line in source.split("\n"):
        if START in line:
            if inside:
                return None
            frozen.append((*lines, line))
            lines, inside = [], True
        elif END in line:
            if not inside:
                return None
            opened.append(tuple(lines))
            lines, inside = [line], False
        else:
            lines.append(line)
    if inside or not opened:
        return None
    return Regions(frozen=(*frozen, tuple(lines)), open=tuple(opened))


def without_markers(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Lines that are no marker."""
    return tuple(line for line in lines if START not in line and END not in line)
