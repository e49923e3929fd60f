"""Fitting a text into a budget: parts with shorter and shorter forms, cut in a stated order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One piece of a prompt."""

    name: str
    forms: tuple[str, ...]
    """From the full text to the shortest; an empty form leaves the part out."""

    def __post_init__(self) -> None:
        if not self.forms:
            raise ValueError(f"part {self.name!r} needs at least one form")


def fitted(
    parts: Sequence[Part], cuts: Sequence[str], fits: Callable[[Mapping[str, str]], bool]
) -> Mapping[str, str] | None:
    """Choose a form for each part, by name: the full ones, or the first cuts that make it fit.

    Cuts are taken one at a time and in order; each names the part that goes to its next shorter
    form (one that has none is left as it is). Nothing comes back once it is cut.

    Returns:
        None where all cuts together are not enough.
    """
    forms = {part.name: part.forms for part in parts}
    level = dict.fromkeys(forms, 0)
    chosen = {name: each[0] for name, each in forms.items()}
    if fits(chosen):
        return chosen
    for name in cuts:
        if level[name] + 1 >= len(forms[name]):
            continue
        level[name] += 1
        chosen[name] = forms[name][level[name]]
        if fits(chosen):
            return chosen
    return None
