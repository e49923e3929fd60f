"""What is multiplied, how a kernel is to go about it, and what is done to the result."""

from dataclasses import dataclass

HALF = ("float16", "bfloat16")
PLANES = {"fp16x3": (2, "float16"), "bf16x6": (3, "bfloat16")}
"""Precisions whose operands can be split before: into how many parts, of which type."""
TRITON_TYPES = {"float32": "tl.float32", "float16": "tl.float16", "bfloat16": "tl.bfloat16"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Triangle:
    """Where ``column - row`` is at most ``by`` (lower), or at least that (upper)."""

    lower: bool
    by: int = 0

    @property
    def rest(self) -> "Triangle":
        """All elements that are not in it."""
        return Triangle(lower=not self.lower, by=self.by + (1 if self.lower else -1))

    def share(self, m: int, n: int) -> float:
        """How much of a matrix lies in it."""
        below = self.by if self.lower else self.by - 1

        def added(last: int) -> int:
            """Of all rows whose end lies up to here, none before the first column."""
            risen = min(n, max(0, last))
            return risen * (risen + 1) // 2 + n * max(0, last - n)

        lower = (added(m + below) - added(below)) / (m * n)
        return lower if self.lower else 1 - lower


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """``C[b] = A[b] @ B[b]`` for all ``b``: sizes, and strides in elements."""

    batch: int = 1
    m: int
    n: int
    k: int
    a: tuple[int, int, int]
    """Strides of A over batch, m and k; a batch stride of 0 is one matrix for all."""
    b: tuple[int, int, int]
    """Strides of B over batch, k and n."""
    c: tuple[int, int, int]
    """Strides of C over batch, m and n."""
    dtype: str = "float32"
    out: str = "float32"
    tf32: bool = False
    """Whether eager computes it in TF32 by default: convolutions."""
    beside_tf32: bool = False
    """Whether a convolution of the same call is computed in TF32. The result is then no more exact
    than that, nobody can tell halves that lose nothing from halves that do, and the judge refuses
    what it can't tell: planes that one kernel makes and another one multiplies."""
    kept: Triangle | None = None
    """Outside of it nothing that is stored depends on the product."""

    @property
    def flat(self) -> bool:
        """Whether C is dense in the order batch, m, n."""
        return self.c[2] == 1 and self.c[1] == self.n and self.c[0] in (0, self.m * self.n)

    @property
    def flop(self) -> int:
        """Floating-point operations, a multiplication and an addition each."""
        return 2 * self.batch * self.m * self.n * self.k

    @property
    def work(self) -> float:
        """The same without what nobody keeps."""
        return self.flop * self.share

    @property
    def share(self) -> float:
        """How much of C is multiplied for."""
        return 1.0 if self.kept is None else self.kept.share(self.m, self.n)

    @property
    def is_vector(self) -> bool:
        """Whether one side is a vector: bound by memory, no tensor cores."""
        return self.m == 1 or self.n == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Tiles, threads and how float32 gets through tensor cores."""

    precision: str
    """``native`` (half precision), ``ieee``, ``tf32``, ``tf32x3``, ``bf16x3``, ``bf16x6`` or
    ``fp16x3``; the last only with planes."""
    planes: str = "tile"
    """``tile``: operands are split in every tile; ``once``: by a kernel before; ``one``: the
    smaller operand before, the larger one in every tile; ``none``: small ones in plain float32."""
    together: int = 1
    """Products that a program computes; only without planes."""
    bm: int = 128
    bn: int = 128
    bk: int = 32
    warps: int = 8
    stages: int = 3
    group: int = 8
    split_k: int = 1
    persistent: bool = False
    descriptors: bool = False
    """Whether tiles are fetched through tensor descriptors."""

    @property
    def planes_each(self) -> int:
        """How many planes an operand has."""
        return PLANES[self.precision][0]

    @property
    def plane_type(self) -> str:
        """What planes are kept in."""
        return PLANES[self.precision][1]


def ceil_div(a: int, b: int) -> int:
    """How many pieces of ``b`` it takes to cover ``a``."""
    return -(-a // b)


def power_above(number: int) -> int:
    """The smallest power of two that is not less."""
    return 1 << max(0, number - 1).bit_length()


def place(*terms: tuple[str, int]) -> str:
    """Where something lies: axes times their strides, added up; nothing of a stride of 0."""
    found = [axis if by == 1 else f"{axis} * {by}" for axis, by in terms if by]
    return " + ".join(found) or "0"
