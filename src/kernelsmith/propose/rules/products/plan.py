"""From a product and a schedule to kernels and the steps that launch them."""

from collections.abc import Callable
from dataclasses import dataclass

from kernelsmith.propose.rules.chip import H200, Chip
from kernelsmith.propose.rules.compiler.call import (
    Allocate,
    Drop,
    Kernel,
    Launch,
    Named,
    Operand,
    Step,
)
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.products.epilogue import Bias, Epilogue
from kernelsmith.propose.rules.products.mixed import mixed_text
from kernelsmith.propose.rules.products.planes import (
    ROWS,
    Layout,
    planes_text,
    repair_text,
    split_in_tile,
    split_text,
)
from kernelsmith.propose.rules.products.product import (
    HALF,
    PLANES,
    Product,
    Schedule,
    ceil_div,
)
from kernelsmith.propose.rules.products.several import programs, several_text
from kernelsmith.propose.rules.products.tiles import describable, reduce_text, tile_text
from kernelsmith.propose.rules.products.vectors import as_vector, vector_text

_SPLIT_BYTES = {"bf16x3": 4, "bf16x6": 6, "tf32x3": 8}
"""Per element of B that is split inside the tile: its planes go through shared memory."""
Writer = Callable[[str, Product, Schedule, Bias | None, Epilogue | None], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A product as kernels, and the steps of a call that compute it."""

    kernels: tuple[Kernel, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operands:
    """What a product is given: tensors of the call it stands in."""

    a: Operand
    b: Operand
    bias: Operand = None
    outputs: tuple[Operand, ...]
    """C, or the tensors of the epilogue in its order."""


def write(
    number: int, product: Product, schedule: Schedule, operands: Operands,
    bias: Bias | None = None, epilogue: Epilogue | None = None, *, chip: Chip = H200,
) -> Written:  # fmt: skip
    """Kernels for one product of a call, named by its number.

    Raises:
        NotRecognised: The schedule does not fit the product or the device.
    """
    check(product, schedule, chip)
    maker = _Maker(number, product, schedule, operands, bias, epilogue, chip)
    if schedule.planes == "none":
        return maker.several()
    if product.is_vector:
        return maker.vector()
    if schedule.planes == "one":
        return maker.mixed()
    return maker.planes() if schedule.planes == "once" else maker.tiles()


def check(product: Product, schedule: Schedule, chip: Chip = H200) -> None:
    """Refuse what cannot be built.

    Raises:
        NotRecognised: It says why.
    """
    p, s = product, schedule
    if min(p.batch, p.m, p.n, p.k) == 0:
        raise NotRecognised("a product of nothing is left to the library")
    if s.planes == "none":
        if s.together * s.bm * s.bn > 64 * 32 * s.warps:
            raise NotRecognised("so many products do not fit the registers of so few warps")
        return
    if p.batch >= 65536:
        raise NotRecognised("a grid has no room for so many products")
    if p.is_vector:
        return
    half = p.dtype in HALF
    if half != (s.precision == "native"):
        raise NotRecognised(f"{s.precision} products of {p.dtype} make no sense")
    if s.precision == "tf32" and not p.tf32:
        raise NotRecognised("TF32 is too coarse for a product that eager computes in float32")
    if s.planes != "tile" and s.precision not in PLANES:
        raise NotRecognised(f"{s.precision} has no planes to write")
    if s.planes == "tile" and s.precision == "fp16x3":
        raise NotRecognised("fp16x3 needs its planes written once")
    if s.planes != "tile" and min(s.bm, s.bn) < ROWS:
        raise NotRecognised(f"planes are multiplied in tiles of {ROWS} rows and columns at least")
    if s.split_k > max(1, p.k // s.bk):
        raise NotRecognised(f"there are fewer than {s.split_k} steps of k")
    stays = s.planes == "once" or (s.planes == "tile" and s.precision in ("native", "tf32"))
    if s.persistent and (s.split_k > 1 or not stays):
        raise NotRecognised("only undivided products of planes or as they come are persistent")
    needed = shared_bytes(p, s)
    if needed > chip.shared_bytes:
        raise NotRecognised(f"{needed // 1024} KiB of shared memory are more than there are")
    if s.descriptors and not chip.descriptors:
        raise NotRecognised("the device has nothing that copies tiles by descriptor")
    if s.descriptors and s.planes == "tile" and not (half and describable(p)):
        raise NotRecognised("operands that lie so are not copied by descriptor")
    values = s.bm * s.bn // (32 * s.warps)
    if s.planes != "tile" and values > 64:
        raise NotRecognised("two sums per element do not fit the registers of so few warps")
    held = values + 3 * s.bm * s.bk // (64 * s.warps)
    if s.precision in _SPLIT_BYTES and s.planes == "tile" and (values > 64 or held > 120):
        raise NotRecognised("a tile that is split does not fit the registers of so few warps")
    if values > 128:
        raise NotRecognised("the tile does not fit the registers of so few warps")


def shared_bytes(product: Product, schedule: Schedule) -> int:
    """What tiles in flight take of a program's shared memory, as measured: stages times tiles."""
    s = schedule
    if s.planes == "one":
        left, right = (s.bm, s.bn) if split_in_tile(product, s) == "a" else (s.bn, s.bm)
        kept = 4 * left * s.bk if s.precision == "fp16x3" else 0
        before = max(1, s.stages - 1) * 4 * left * s.bk
        return before + s.stages * 2 * s.planes_each * right * s.bk + kept
    each = 2 * s.planes_each if s.planes == "once" else 2 if product.dtype in HALF else 4
    stages = s.stages if s.planes == "once" or product.dtype in HALF else max(1, s.stages - 1)
    if s.persistent and s.stages > 1 and product.k <= s.bk:
        stages += 1  # with one step a tile, it is tiles that are loaded ahead
    extra = _SPLIT_BYTES.get(s.precision, 0) * s.bn * s.bk if s.planes == "tile" else 0
    return stages * each * (s.bm + s.bn) * s.bk + extra


class _Maker:
    """Writes the kernels of one product."""

    def __init__(
        self, number: int, product: Product, schedule: Schedule, operands: Operands,
        bias: Bias | None, epilogue: Epilogue | None, chip: Chip,
    ) -> None:  # fmt: skip
        self.number = number
        self.chip = chip
        self.product, self.schedule = product, schedule
        self.operands, self.bias, self.epilogue = operands, bias, epilogue
        self.made: list[Kernel] = []
        self.steps: list[Step] = []
        self.dropped: list[str] = []

    def vector(self) -> Written:
        """A matrix and a vector."""
        self.schedule = as_vector(self.schedule, self.product)
        text = vector_text(
            self._name("product"), self.product, self.schedule, self.bias, self.epilogue
        )
        return self._main(text, ("a", "b"))

    def tiles(self) -> Written:
        """Tiles as they come."""
        text = tile_text(
            self._name("product"), self.product, self.schedule, self.bias, self.epilogue
        )
        return self._main(text, ("a", "b"))

    def several(self) -> Written:
        """Small ones, some at a time."""
        given = (*self._all(("a", "b")), *self._last())
        grid = (programs(self.product, self.schedule),)
        self._launch("product", self._text(several_text), given, grid)
        return self._written()

    def planes(self) -> Written:
        """Split, multiply, repair."""
        p, s, layout = self.product, self.schedule, Layout(self.product, self.schedule)
        self._planes_of("a", layout.batch_a, layout.rows_a, layout)
        self._planes_of("b", layout.batch_b, layout.rows_b, layout)
        self._allocate("marks_a", (layout.programs_a,), "int8")
        self._allocate("marks_b", (layout.programs_b,), "int8")
        scales = ("scales_a", "scales_b") if s.precision == "fp16x3" else ()
        given = ("a", "b", "planes_a", "planes_b", *scales, "marks_a", "marks_b")
        self._launch(
            "split", split_text(self._name("split"), p, s), self._all(given),
            (layout.programs_a + layout.programs_b,), warps=4, stages=1,
        )  # fmt: skip
        self._main(self._text(planes_text), ("planes_a", "planes_b", *scales))
        return self._repaired()

    def mixed(self) -> Written:
        """Split the smaller operand, multiply, repair."""
        p, s, layout = self.product, self.schedule, Layout(self.product, self.schedule)
        left = split_in_tile(p, s)
        if left == "a":
            right, batch, rows, programs = "b", layout.batch_b, layout.rows_b, layout.programs_b
            tiles = ceil_div(p.m, s.bm)
        else:
            right, batch, rows, programs = "a", layout.batch_a, layout.rows_a, layout.programs_a
            tiles = ceil_div(p.n, s.bn)
        self._planes_of(right, batch, rows, layout)
        self._allocate(f"marks_{right}", (programs,), "int8")
        self._allocate(f"marks_{left}", (p.batch * tiles * s.split_k,), "int8")
        scales = (f"scales_{right}",) if s.precision == "fp16x3" else ()
        self._launch(
            "split", split_text(self._name("split"), p, s, right),
            self._all((right, f"planes_{right}", *scales, f"marks_{right}")), (programs,),
            warps=4, stages=1,
        )  # fmt: skip
        self._main(self._text(mixed_text), (left, f"planes_{right}", *scales, f"marks_{left}"))
        return self._repaired()

    def _planes_of(self, side: str, batch: int, rows: int, layout: Layout) -> None:
        s = self.schedule
        shape = (batch, s.planes_each, rows, layout.width)
        self._allocate(f"planes_{side}", shape, s.plane_type)
        if s.precision == "fp16x3":
            self._allocate(f"scales_{side}", (batch, layout.steps, rows), "float32")

    def _repaired(self) -> Written:
        layout = Layout(self.product, self.schedule)
        self._launch(
            "repair", self._text(repair_text, "repair"),
            (*self._all(("a", "b", "marks_a", "marks_b")), *self._last()),
            (layout.blocks_a * layout.blocks_b, self.product.batch), warps=4, stages=2,
        )  # fmt: skip
        return self._written()

    def _main(self, text: str, given: tuple[str, ...]) -> Written:
        """The product itself, and the sum of its shares of k."""
        p, s = self.product, self.schedule
        count = ceil_div(p.m, s.bm) * ceil_div(p.n, s.bn)
        if s.persistent:
            blocks = 2 if s.warps == 4 else 1
            count = min(count, self.chip.processors * blocks)
        grid = (count, p.batch, s.split_k)
        if s.split_k == 1:
            self._launch("product", text, (*self._all(given), *self._last()), grid)
            return self._written()
        self._allocate("parts", (s.split_k, p.batch, p.m, p.n), "float32")
        self._launch("product", text, (*self._all(given), *self._all(("parts",))), grid)
        count = p.batch * p.m * p.n
        self._launch(
            "sum", self._text(reduce_text, "sum"),
            (*self._all(("parts",)), *self._last()), (ceil_div(count, 1024),), warps=4, stages=1,
        )  # fmt: skip
        return self._written()

    def _text(self, writer: Writer, part: str = "product") -> str:
        return writer(self._name(part), self.product, self.schedule, self.bias, self.epilogue)

    def _name(self, part: str) -> str:
        return f"{part}_{self.number}"

    def _allocate(self, part: str, shape: tuple[int, ...], dtype: str) -> None:
        stride: list[int] = []
        step = 1
        for size in reversed(shape):
            stride.insert(0, step)
            step *= size
        self.steps.append(
            Allocate(name=self._name(part), shape=shape, stride=tuple(stride), dtype=dtype)
        )
        self.dropped.append(self._name(part))

    def _all(self, parts: tuple[str, ...]) -> tuple[Operand, ...]:
        known: dict[str, Operand] = {"a": self.operands.a, "b": self.operands.b}
        return tuple(known.get(part, Named(name=self._name(part))) for part in parts)

    def _last(self) -> tuple[Operand, ...]:
        bias = () if self.bias is None else (self.operands.bias,)
        return (*bias, *self.operands.outputs)

    def _launch(
        self, part: str, text: str, operands: tuple[Operand, ...], grid: tuple[int, ...], *,
        warps: int | None = None, stages: int | None = None,
    ) -> None:  # fmt: skip
        """The grid goes with the operands, behind them, as the compiler's fixed grids do."""
        self.made.append(
            Kernel(
                name=self._name(part), text=text, schedule="template", grid="FixedGrid",
                defaults=(("num_warps", warps or self.schedule.warps),
                          ("num_stages", stages or self.schedule.stages)),
            )
        )  # fmt: skip
        self.steps.append(Launch(kernel=self._name(part), operands=(*operands, *grid)))

    def _written(self) -> Written:
        drops = tuple(Drop(name=each) for each in self.dropped)
        return Written(kernels=tuple(self.made), steps=(*self.steps, *drops))
