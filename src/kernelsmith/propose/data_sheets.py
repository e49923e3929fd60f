"""GPUs by name, as their makers describe them: numbers for the rules, words for a prompt."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One GPU; 0 where its maker says nothing that the name settles."""

    pattern: str
    """What its name holds."""
    family: str
    """As its maker calls the generation."""
    architecture: int = 0
    """Of its code, as in ``sm_90``."""
    processors: int = 0
    memory: str = ""
    """How much, and of which kind."""
    memory_tb_s: float = 0.0
    memory_words: str = ""
    """Where the speed depends on more than the name."""
    l2_mb: int = 0
    shared_kb: int = 0
    """Shared memory of a multiprocessor."""
    block_kb: int = 0
    """What of it one program can have."""
    float32_tflops: float = 0.0
    bfloat16_tflops: float = 0.0
    """Of tensor cores."""
    beside: str = ""
    """What else a writer of kernels should know."""

    @property
    def words(self) -> str:
        """The sheet in one line."""
        code = f" (sm_{self.architecture})" if self.architecture else ""
        fast = self.memory_tb_s >= 1
        speed = f"{self.memory_tb_s:.1f} TB/s" if fast else f"{self.memory_tb_s * 1000:.0f} GB/s"
        parts = [
            self.family + code,
            f"{self.processors} SMs" if self.processors else "",
            self.memory_words or f"{self.memory} at {speed}",
            f"{self.l2_mb} MB L2" if self.l2_mb else "",
            f"{self.shared_kb} KB shared memory per SM ({self.block_kb} KB per block)",
            f"{self.float32_tflops:g} TFLOP/s float32" if self.float32_tflops else "",
            f"{self.bfloat16_tflops:g} TFLOP/s bfloat16 on tensor cores"
            if self.bfloat16_tflops else "",
            self.beside,
        ]  # fmt: skip
        return ", ".join(each for each in parts if each)


H200 = Sheet(
    pattern=r"\bH200\b", family="Hopper", architecture=90, processors=132, memory="141 GB HBM3e",
    memory_tb_s=4.8, l2_mb=50, shared_kb=228, block_kb=227, float32_tflops=67, bfloat16_tflops=989,
)  # fmt: skip
SHEETS = (
    Sheet(pattern=r"\bB200\b|\bGB200\b", family="Blackwell", processors=148,
          memory_words="180 to 192 GB HBM3e at about 8 TB/s", memory_tb_s=8.0, shared_kb=228,
          block_kb=227),
    H200,
    Sheet(pattern=r"\bH100\b.*PCIe", family="Hopper", architecture=90, processors=114,
          memory="80 GB HBM2e", memory_tb_s=2.0, l2_mb=50, shared_kb=228, block_kb=227,
          float32_tflops=51, bfloat16_tflops=756),
    Sheet(pattern=r"\bG?H100\b|\bGH200\b", family="Hopper", architecture=90, processors=132,
          memory_words="HBM3 at 3.35 TB/s or more", memory_tb_s=3.35, l2_mb=50, shared_kb=228,
          block_kb=227, float32_tflops=67, bfloat16_tflops=989),
    Sheet(pattern=r"\bH20\b", family="Hopper", architecture=90, processors=78,
          memory="96 GB HBM3", memory_tb_s=4.0, l2_mb=60, shared_kb=228, block_kb=227,
          bfloat16_tflops=148, beside="much bandwidth and little arithmetic"),
    Sheet(pattern=r"\bA100\b", family="Ampere", architecture=80, processors=108,
          memory_words="HBM2e at 1.6 (40 GB) or 2.0 TB/s (80 GB)", memory_tb_s=2.0, l2_mb=40,
          shared_kb=164, block_kb=163, float32_tflops=19.5, bfloat16_tflops=312),
    Sheet(pattern=r"\bL40S?\b", family="Ada", architecture=89, processors=142,
          memory="48 GB GDDR6", memory_tb_s=0.864, l2_mb=96, shared_kb=100, block_kb=99),
    Sheet(pattern=r"\bRTX 4090\b", family="Ada", architecture=89, processors=128,
          memory="24 GB", memory_tb_s=1.0, l2_mb=72, shared_kb=100, block_kb=99),
    Sheet(pattern=r"\bRTX 3090\b", family="Ampere", architecture=86, processors=82,
          memory="24 GB", memory_tb_s=0.936, l2_mb=6, shared_kb=100, block_kb=99),
    Sheet(pattern=r"\bA10G?\b", family="Ampere", architecture=86, memory="24 GB GDDR6",
          memory_tb_s=0.6, l2_mb=6, shared_kb=100, block_kb=99),
    Sheet(pattern=r"\bV100\b", family="Volta", architecture=70, processors=80, memory="HBM2",
          memory_tb_s=0.9, l2_mb=6, shared_kb=96, block_kb=96),
    Sheet(pattern=r"\bT4\b", family="Turing", architecture=75, processors=40,
          memory="16 GB GDDR6", memory_tb_s=0.32, l2_mb=4, shared_kb=64, block_kb=64),
)  # fmt: skip

METAX = (
    "MetaX C500: 104 processors, a wave holds 64 threads, 1024 threads a block, 131072 "
    "registers and 64 KB shared memory a block, 32 KB L1, 8 MB L2, 64 GB HBM2e at about "
    "1.8 TB/s (derived from its clock); sizes tuned for 32 lanes leave half idle"
)
"""Its maker counts otherwise; nothing but prompts needs it so far."""
_METAX = re.compile(r"\bC5\d\d\b|MetaX|XCORE1000")


def sheet_of(name: str) -> Sheet | None:
    """The sheet of an NVIDIA GPU of that name."""
    return next((each for each in SHEETS if re.search(each.pattern, name)), None)


def words_of(name: str) -> str:
    """What a prompt says of a GPU of that name; nothing of one that no sheet knows."""
    sheet = sheet_of(name)
    if sheet is not None:
        return sheet.words
    return METAX if _METAX.search(name) else ""
