"""What can be chosen for the products of a call, and what is chosen where nobody says.

The figures are those of an H200 (torch 2.11, Triton 3.6, CUDA graphs, float32; docs/rules.md); what
is expected of other chips follows from their data sheets.
"""

from collections.abc import Sequence
from dataclasses import replace

from kernelsmith.propose.rules.chip import H200, Chip
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.levers import Lever
from kernelsmith.propose.rules.products.product import (
    HALF,
    PLANES,
    Product,
    Schedule,
    ceil_div,
    power_above,
)
from kernelsmith.propose.rules.space import Parameter, Parameters, Seed

_LIBRARY, _TILES, _PLANES = 51e6, 63e6, 170e6
"""FLOP per microsecond: cuBLAS in float32, ``bf16x6`` in tiles, ``fp16x3`` from planes."""
_HALVES = 600e6
"""The same of half precision, whoever multiplies."""
_PLAIN = 20e6
"""Small products in plain float32, which shared memory limits; an estimate."""
BYTES = 4.2e6
"""Bytes per microsecond that splitting moves."""
COARSE = 1.2e-5
"""How far off ``bf16x3`` is in a row, by the judge's norm: 6e-6 to 1.1e-5 of signed rows, however
long (a factor keeps 16 bits and a sign). On an H200 that was 3 to 5 times as far off as eager for
long centred rows and more than 10 times for short signed ones, which the judge does not allow."""
_ROUNDED: tuple[tuple[str, Seed], ...] = (("fp16x3", (("precision", "bf16x6"),)),)
"""Tiles of a convolution over one point are in TF32 by default, as torch's may be."""
_MANY = 32
"""Small products of a batch from which on they are worth a kernel of their own."""
_EXTRA_US = 8.0
"""Two launches more than a library call has, and tiles that fill no wave."""
TILES = ("auto", "32x32x32", "32x64x32", "64x32x32", "64x64x32", "64x64x64", "64x128x32",
         "64x128x64", "128x64x32", "128x64x64", "128x128x32", "128x128x64", "128x256x32",
         "128x256x64")  # fmt: skip


def parameters(products: Sequence[Product], chip: Chip = H200) -> tuple[Parameter, ...]:
    """The parameters of a call with these products; none where there is none."""
    if not products:
        return ()
    flop = [each.flop for each in products]
    kernel = f"product_{flop.index(max(flop))}"
    exact = [each for each in products if each.dtype not in HALF]
    ways: tuple[str, ...] = ("auto", "planes", "mixed", "tiles", "library")
    if not exact or any(each.beside_tf32 for each in exact):
        ways = ("auto", "tiles", "library")
    if any(_is_small(each) for each in products):
        ways = (*ways, "several")
    made = [
        Parameter(name="product", choices=ways, default="auto", ordered=False, lever=Lever.PRODUCT,
                  why="float32 products on tensor cores, or the library's"),
    ]  # fmt: skip
    if exact:
        made.append(
            Parameter(
                name="precision",
                choices=("fp16x3", "bf16x6", "bf16x3", "tf32x3", "ieee"),
                default="fp16x3",
                safe="bf16x6",
                coarse=(("bf16x3", COARSE),),
                rounded=_ROUNDED if any(each.tf32 for each in exact) else (),
                ordered=False,
                lever=Lever.PRODUCT,
                why="how many half-precision products make one of float32",
            )
        )
    made += [
        Parameter(name="product_tile", choices=TILES, default="auto", lever=Lever.TILE,
                  kernel=kernel, why="rows, columns and depth of a product's tile"),
        Parameter(name="product_warps", choices=("auto", "4", "8", "16"), default="auto",
                  lever=Lever.WARPS, kernel=kernel, why="warps that share a product's tile"),
        Parameter(name="product_stages", choices=("auto", "2", "3", "4", "5", "6"), default="auto",
                  lever=Lever.STAGES, kernel=kernel, why="tiles in flight while one is multiplied"),
        Parameter(name="split_k", choices=("auto", "1", "2", "4", "8", "16", "32"), default="auto",
                  lever=Lever.PROGRAMS, kernel=kernel, why="shares of k for products of few tiles"),
        Parameter(name="product_group", choices=("1", "4", "8", "16"), default="8",
                  lever=Lever.CACHE, kernel=kernel, why="rows of tiles that share columns"),
        Parameter(name="product_epilogue", choices=("fused", "apart"), default="fused",
                  ordered=False, lever=Lever.FORM,
                  why="elementwise work on the product while it is in registers"),
    ]  # fmt: skip
    loads = ("pointers", "descriptors") if chip.descriptors else ("pointers",)
    # Planes are our own, and aligned; half precision is read where it lies.
    usual = "pointers" if products[flop.index(max(flop))].dtype in HALF else loads[-1]
    made += [
        Parameter(name="product_loads", choices=loads, default=usual, ordered=False,
                  lever=Lever.PRODUCT, why="tiles fetched by the tensor memory accelerator"),
        Parameter(name="product_programs", choices=("auto", "tiles", "persistent"),
                  default="auto", ordered=False, lever=Lever.PROGRAMS,
                  why="programs that stay and take the next tile"),
    ]  # fmt: skip
    return tuple(made)


SKINNY = 256
"""Rows or columns up to which the larger operand is worth splitting where it is used."""
SEEDS: tuple[tuple[tuple[str, str], ...], ...] = (
    (),
    (("product_programs", "tiles"),),
    (("product", "planes"), ("product_tile", "64x64x64"), ("product_loads", "pointers")),
    (("product", "tiles"), ("precision", "bf16x6")),
    (("product", "planes"), ("product_tile", "64x64x64"), ("split_k", "4")),
    (("product", "planes"), ("product_loads", "pointers")),
    (("product", "planes"), ("precision", "bf16x6")),
    (("product", "tiles"), ("precision", "bf16x6"), ("product_tile", "64x64x32")),
    (("product_epilogue", "apart"),),
)
"""What differs from the defaults, best guess first."""
_HALF_SEEDS: tuple[tuple[tuple[str, str], ...], ...] = (
    (("product", "tiles"), ("product_loads", "descriptors"), ("product_programs", "persistent")),
    (("product", "tiles"), ("product_loads", "descriptors"), ("product_tile", "128x256x64")),
    (("product", "tiles"), ("product_programs", "persistent")),
)
"""The same for half precision, before all others."""


def seeds(
    products: Sequence[Product], chip: Chip = H200
) -> tuple[tuple[tuple[str, str], ...], ...]:
    """What to begin with for a call with these products."""
    if not products:
        return ((),)
    known = {each.name: each.choices for each in parameters(products, chip)}
    largest = max(products, key=lambda each: each.flop)
    wanted = list(SEEDS)
    mixed = (("product", "mixed"),)
    wanted.insert(1 if min(largest.m, largest.n) <= SKINNY else 6, mixed)
    if largest.dtype in HALF:
        wanted[1:1] = _HALF_SEEDS
    if _is_small(largest):
        several = ("product", "several")
        wanted[1:1] = [(several,), (several, ("product_tile", "32x32x32"))]
    if largest.tf32:
        # As exact as eager is, and no more: plain TF32.
        tiles = ("product", "tiles")
        wanted[1:1] = [(tiles,), (tiles, ("product_tile", "128x64x32"))]
    defaults = {each.name: each.default for each in parameters(products, chip)}
    fitting = [
        tuple((name, value) for name, value in seed if defaults[name] != value) for seed in wanted
        if all(value in known.get(name, ()) for name, value in seed)
    ]  # fmt: skip
    return tuple(dict.fromkeys(fitting))


def _moved_us(product: Product, chip: Chip) -> float:
    """What it takes to read both operands and write C once."""
    p = product
    each = 2 if p.dtype in HALF else 4
    return each * (_apart(p) + p.batch * p.m * p.n) / (BYTES * chip.memory)


def _apart(product: Product) -> int:
    """Elements of both operands."""
    p = product
    a, b = (1 if by == 0 else p.batch for by in (p.a[0], p.b[0]))
    return (a * p.m + b * p.n) * p.k


def expected_us(product: Product, way: str, chip: Chip = H200) -> float:
    """What a product is expected to take: ``library``, ``tiles``, ``planes`` or ``several``."""
    p = product
    moved = _moved_us(p, chip)
    if way == "planes":
        split = 8 * _apart(p) / (BYTES * chip.memory)
        return split + max(p.work / (_PLANES * chip.tensor), moved) + _EXTRA_US
    if way == "several":
        return max(p.flop / (_PLAIN * chip.plain), moved) + 2
    rate = _LIBRARY * chip.plain if way == "library" else _TILES * chip.tensor
    if p.dtype in HALF:
        rate = _HALVES * chip.tensor
    elif p.tf32:
        rate *= 4
    flop = p.flop if way == "library" else p.work  # the library multiplies what nobody keeps
    return max(flop / rate, moved) + 2


def _is_small(product: Product) -> bool:
    """Too small for tensor cores to matter, with a sum that is soon done."""
    p = product
    return not p.is_vector and (min(p.m, p.n) < 32 or p.k < 16) and p.k <= 256


def best_way(product: Product, *, fused: bool, chip: Chip = H200) -> str:
    """Who should compute it, by the cost model; ``fused`` saves a sweep over C."""
    p = product
    if _is_small(p):
        # The library's kernels are made for larger ones; a single one of them is a launch anyway.
        many = fused or p.batch >= _MANY or p.batch * p.m * p.n >= 1 << 18
        bound = p.flop / (_PLAIN * chip.plain) <= 2 * _moved_us(p, chip)
        return "several" if many and bound else "library"
    if p.batch >= 65536:
        return "library"
    if p.is_vector:
        return "tiles"
    if min(p.m, p.n) < 32 or p.k < 16:
        return "library"
    if p.tf32 and not fused:
        # A tile reads and writes what it needs and no more, whatever the layout; the library's
        # convolutions bring channels side by side first.
        bound = p.flop / (4 * _TILES * chip.tensor) <= _moved_us(p, chip)
        return "tiles" if bound else "library"
    if p.dtype in HALF or p.tf32:
        return "tiles" if fused else "library"
    ways = ("tiles", "library") if p.beside_tf32 else ("planes", "tiles")
    return min(ways, key=lambda way: expected_us(p, way, chip))


def scheduled(
    product: Product, chosen: Parameters, *, leading: bool, fused: bool, chip: Chip = H200
) -> Schedule | None:
    """The schedule of one product; ``None`` leaves it to the library.

    Args:
        product: What is multiplied.
        chosen: Values of ``parameters``.
        leading: Whether it is the call's largest, whose tiles are chosen by hand.
        fused: Whether what follows is computed with it.
        chip: What it runs on.

    Raises:
        NotRecognised: These choices do not go together.
    """
    way = chosen["product"]
    if way == "auto":
        way = best_way(product, fused=fused, chip=chip)
    if way == "library":
        return None
    if way == "several":
        return _several(product, chosen, chip, leading=leading)
    precision = _precision(product, way, chosen)
    if chosen["product"] == "auto" and way == "planes" and precision not in PLANES:
        way = "tiles"
    planes = {"planes": "once", "mixed": "one"}.get(way, "tile")
    if product.dtype in HALF:
        planes = "tile"
    if product.is_vector:
        return _vector(product, chosen, chip)
    if way == "planes" and product.tf32 and chosen["product"] != "planes":
        planes = "tile"
    if planes != "tile" and precision not in PLANES:
        raise NotRecognised(f"{precision} has no planes to write")
    found = _automatic(product, precision, planes, chip)
    if not leading:
        return found
    return _adjusted(product, found, chosen, chip)


def _precision(product: Product, way: str, chosen: Parameters) -> str:
    if product.dtype in HALF:
        return "native"
    wanted = chosen["precision"]
    if way == "tiles" and wanted == "fp16x3":
        return "tf32" if product.tf32 else "bf16x6"
    return wanted


def _automatic(product: Product, precision: str, planes: str, chip: Chip) -> Schedule:
    p = product
    wide = ceil_div(p.m, 128) * ceil_div(p.n, 128) * p.batch * p.share
    if planes == "one":
        # The narrow side in one tile where it can be, so that the wide one is split once.
        narrow = 128 if min(p.m, p.n) > 64 else 64
        bm, bn = (128, narrow) if p.m >= p.n else (narrow, 128)
        return _divided(
            p, Schedule(precision=precision, planes="one", bm=bm, bn=bn, bk=64,
                        warps=8 if narrow == 128 else 4, stages=2), chip
        )  # fmt: skip
    if planes == "once":
        deep = 64 if precision == "fp16x3" and p.k > 32 else 32
        large = wide >= chip.processors or (p.k >= 4096 and p.m > 64 and p.n > 64)
        bm, bn, warps, stages = (128, 128, 8, 3) if large else (64, 64, 4, 3)
        if precision == "bf16x6":
            stages = 4
        return _divided(
            p, Schedule(precision=precision, planes="once", bm=bm, bn=bn, bk=deep, warps=warps,
                        stages=stages, descriptors=large and chip.descriptors), chip
        )  # fmt: skip
    # TF32 is bound by memory where k is small: an operand is read once for all rows of a tile.
    large = wide >= 2 * chip.processors and (p.k > 64 or precision == "tf32")
    bm, bn, warps = (128, 128, 8) if large else (64, 64, 4)
    bm, bn = min(bm, max(16, power_above(p.m))), min(bn, max(16, power_above(p.n)))
    deep = 64 if precision == "native" or (precision == "tf32" and p.k <= 64) else 32
    deep = min(deep, max(16, power_above(p.k)))
    return _divided(
        p, Schedule(precision=precision, bm=bm, bn=bn, bk=deep, warps=warps, stages=3), chip
    )  # fmt: skip


def _divided(product: Product, schedule: Schedule, chip: Chip) -> Schedule:
    """With as many shares of k as it takes to give every multiprocessor something."""
    p, s = product, schedule
    programs = ceil_div(p.m, s.bm) * ceil_div(p.n, s.bn) * p.batch * max(p.share, 0.01)
    shares = 1
    while shares < 32 and 2 * shares * programs <= 2 * chip.processors and (
        ceil_div(p.k, s.bk) >= 8 * shares
    ):  # fmt: skip
        shares *= 2
    return replace(s, split_k=shares)


def _several(product: Product, chosen: Parameters, chip: Chip, *, leading: bool) -> Schedule:
    """Tiles that hold whole products where they can, and as many as fill a few registers."""
    p = product
    if not _is_small(p):
        raise NotRecognised("several products at a time are small ones")
    bm, bn = (min(64, power_above(each)) for each in (p.m, p.n))
    bk = 16 if p.k <= 16 else 32
    warps, stages = 4, 2
    if leading:
        if chosen["product_tile"] != "auto":
            sizes = [int(each) for each in chosen["product_tile"].split("x")]
            bm, bn, bk = min(bm, sizes[0]), min(bn, sizes[1]), min(bk, sizes[2])
        if chosen["product_warps"] != "auto":
            warps = int(chosen["product_warps"])
        if chosen["product_stages"] != "auto":
            stages = int(chosen["product_stages"])
        if chosen["split_k"] not in ("auto", "1"):
            raise NotRecognised("the k of small products is not divided")
    tiles, together = ceil_div(p.m, bm) * ceil_div(p.n, bn), 1
    while (
        2 * together * bm * bn <= 512 * warps
        and 8 * together * (bm + bn) * bk <= 48 << 10
        and 4 * together * chip.processors <= tiles * p.batch
    ):
        together *= 2
    precision = "native" if p.dtype in HALF else "ieee"
    return Schedule(precision=precision, planes="none", bm=bm, bn=bn, bk=bk, warps=warps,
                    stages=stages, together=together)  # fmt: skip


def _vector(product: Product, chosen: Parameters, chip: Chip) -> Schedule:
    """Long rows in few pieces where k is dense, else many rows at once."""
    p = product
    dense = (p.a[2] if p.n == 1 else p.b[1]) == 1
    block, deep = (8, 512) if dense else (128, 32)
    found = Schedule(precision="ieee", bm=block, bn=block, bk=deep, warps=4, stages=3)
    rows = max(p.m, p.n)
    shares = 1
    while shares < 16 and 2 * shares * ceil_div(rows, block) * p.batch <= 4 * chip.processors and (
        p.k >= 4 * shares * deep
    ):  # fmt: skip
        shares *= 2
    if chosen["split_k"] != "auto":
        shares = int(chosen["split_k"])
    if chosen["product_warps"] != "auto":
        found = replace(found, warps=int(chosen["product_warps"]))
    return replace(found, split_k=shares)


def _adjusted(product: Product, schedule: Schedule, chosen: Parameters, chip: Chip) -> Schedule:
    s = schedule
    if chosen["product_tile"] != "auto":
        bm, bn, bk = (int(each) for each in chosen["product_tile"].split("x"))
        warps = 4 if bm * bn <= 64 * 128 else 8
        each = 2 if product.dtype in HALF else 4
        if s.planes != "tile":
            each = 2 * s.planes_each
        room = chip.shared_bytes * 6 // 7
        stages = max(2, min(4, room // (each * (bm + bn) * bk)))
        s = _divided(
            product, replace(s, bm=bm, bn=bn, bk=bk, warps=warps, stages=stages, split_k=1), chip
        )
    if chosen["product_warps"] != "auto":
        s = replace(s, warps=int(chosen["product_warps"]))
    if chosen["product_stages"] != "auto":
        s = replace(s, stages=int(chosen["product_stages"]))
    if chosen["split_k"] != "auto":
        s = replace(s, split_k=int(chosen["split_k"]))
    s = replace(s, group=int(chosen["product_group"]))
    if s.planes == "once":
        s = replace(s, descriptors=chosen["product_loads"] == "descriptors")
        if _stays(product, s, chosen["product_programs"], chip):
            s = replace(s, persistent=True, split_k=1)
            if chosen["product_stages"] == "auto" and product.k <= s.bk:
                s = replace(s, stages=min(s.stages, 2))  # one more is loaded ahead
        return s
    if product.dtype in HALF:
        s = replace(s, descriptors=chosen["product_loads"] == "descriptors")
    if chosen["product_programs"] == "persistent":
        s = replace(s, persistent=True, split_k=1)
    return s


def _stays(product: Product, schedule: Schedule, asked: str, chip: Chip) -> bool:
    """Whether programs stay and take the next tile.

    With 256 and with 512 tiles that was 1.18 times as fast on an H200 and its 132 multiprocessors.
    """
    if asked != "auto":
        return asked == "persistent"
    tiles = -(-product.m // schedule.bm) * -(-product.n // schedule.bn)
    return schedule.descriptors and schedule.split_k == 1 and tiles > chip.processors
