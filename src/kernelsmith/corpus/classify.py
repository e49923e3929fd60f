"""The sixth stage: what a task computes, how hard it is, and samples in which all are represented.

The family follows from the operators that ran, the commonest heavy one first, with names only
where operators cannot tell; the rules are tried from the top and the first that fits decides.
Difficulty 1 has at most 4 operators that compute, 2 at most 20, 3 more; an attention, a scan or a
recurrence is at least 2.
"""

import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from kernelsmith.bench.suites.families import FAMILIES
from kernelsmith.corpus.store import Record, Store

_MOVES = re.compile(
    r"^(_?unsafe_)?(view|reshape|_reshape|expand|permute|transpose|t$|squeeze|unsqueeze|slice|select"
    r"|clone|contiguous|_to_copy|detach|alias|as_strided|copy_?|split|cat$|stack|empty|zeros|ones|full"
    r"|arange|lift|unbind|repeat|flatten|chunk|constant|scalar_tensor|new_|fill|movedim|swapaxes"
    r"|diagonal|narrow|set_|resize|item|_local_scalar|is_|randn|rand|eye|tril|triu|linspace)"
)
_MATMUL = {"mm", "addmm", "linear", "addmv", "mv", "dot"}
_BATCHED = {"bmm", "baddbmm"}
_NORMS = re.compile(r"norm|batch_norm|var_mean|rsqrt")
_POOLS = re.compile(r"pool")
_ACTIVATIONS = re.compile(
    r"relu|gelu|silu|sigmoid|tanh|elu|softplus|mish|hardswish|hardtanh|leaky|threshold|glu|prelu"
)
_REDUCTIONS = re.compile(
    r"^(sum|mean|amax|amin|max|min|prod|std|var|any|all|argmax|argmin|logsumexp|norm"
    r"|linalg_vector_norm|cosine_similarity|_cdist_forward)"
)
_INDEXING = re.compile(r"embedding|index|gather|scatter|take|masked|where|roll|flip|pad|nonzero")
_IMAGE = re.compile(
    r"upsample|grid_sampler|pixel_(un)?shuffle|interpolat|affine_grid|im2col|col2im"
)
_SCANS = re.compile(r"cumsum|cumprod|cummax|cummin|logcumsumexp")
_SORTS = re.compile(r"sort|topk|kthvalue|median|unique|searchsorted|bucketize")


def computing(ops: Mapping[str, int]) -> dict[str, int]:
    """Operators that compute something, rather than move or make it."""
    return {name: count for name, count in ops.items() if not _MOVES.match(name)}


def family_of(name: str, ops: Mapping[str, int], code: str, outputs: Sequence[str]) -> str:
    """One of the families that all suites share."""
    work = computing(ops)
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    convolutions = sum(n for op, n in work.items() if "convolution" in op or "conv" in op)
    products = sum(n for op, n in work.items() if op in _MATMUL)
    batched = sum(n for op, n in work.items() if op in _BATCHED)
    softmax = sum(n for op, n in work.items() if "softmax" in op)
    if "loss" in words or (outputs and all(each.endswith("[]") for each in outputs)):
        return "loss"
    if re.search(r"optimi[sz]er|adam|sgd", words):
        return "optimiser"
    if any("scaled_dot_product" in op for op in work) or (batched >= 2 and softmax):
        return "attention"
    if re.search(r"moe|expert|router|routing|gate$", words) and (
        any("topk" in op or "sort" in op for op in work) or "expert" in words
    ):
        return "routing"
    if any(re.search(r"lstm|gru|rnn", op) for op in work) or re.search(
        r"lstm|gru|rnn|mamba|ssm|rwkv|retention|recurren|s4d?", words
    ):
        return "recurrence"
    if "quant" in words or any("quantize" in op for op in work):
        return "quantisation"
    if re.search(r"graph|gcn|gat_|_gat|edge|message|node", words) and any(
        re.search(r"scatter|index|sparse", op) for op in work
    ):
        return "sparse"
    if any(_SCANS.search(op) for op in work) and not products and not convolutions:
        return "scan"
    if convolutions:
        return "transposed convolution" if "ConvTranspose" in code else "convolution"
    if any("fft" in op for op in work):
        return "spectral"
    if re.search(r"attention|attn", words) and softmax:
        return "attention"
    if batched and batched >= products:
        return "batched matmul"
    if products:
        return "matmul"
    if any(op.startswith("linalg") and "norm" not in op for op in work):
        return "linear algebra"
    rules = ((_POOLS, "pooling"), (_IMAGE, "image"), (_SORTS, "sorting"), (_NORMS, "normalisation"),
             (_INDEXING, "indexing"))  # fmt: skip
    for pattern, family in rules:
        if any(pattern.search(op) for op in work):
            return family
    if work and all(_ACTIVATIONS.search(op) or op in ("mul", "add") for op in work):
        return "activation" if any(_ACTIVATIONS.search(op) for op in work) else "elementwise"
    if softmax:
        return "attention"
    if any(_REDUCTIONS.match(op) for op in work):
        return "reduction"
    return "elementwise" if work else "indexing"


def difficulty_of(family: str, ops: Mapping[str, int]) -> int:
    """1, 2 or 3, by the number of operators that compute."""
    count = sum(computing(ops).values())
    found = 1 if count <= 4 else 2 if count <= 20 else 3
    return max(found, 2) if family in ("attention", "scan", "recurrence") else found


def classify(store: Store) -> None:
    """Give every unique module its family and difficulty."""
    unique = {record.key for record in store.need("deduplicate").kept()}
    stage = store.stage("classify")
    stage.clear()
    for record in store.need("run").kept():
        if record.key not in unique:
            continue
        found = record.data.get("ops")
        ops = {k: int(str(v)) for k, v in found.items()} if isinstance(found, dict) else {}
        name = record.key.rpartition(":")[2]
        family = family_of(name, ops, record.text("code"), record.texts("outputs"))
        assert family in FAMILIES, family
        stage.add(
            Record(key=record.key, data={"family": family, "difficulty": difficulty_of(family, ops),
                                         "op_count": sum(computing(ops).values())})
        )  # fmt: skip
    stage.close()


def sample(records: Sequence[Record], count: int, seed: int = 0) -> list[Record]:
    """Take turns over families and difficulties, so that the rare ones are all in."""
    shelves: dict[tuple[str, float], list[Record]] = defaultdict(list)
    for record in sorted(records, key=lambda each: each.key):
        shelves[record.text("family"), record.number("difficulty")].append(record)
    generator = random.Random(seed)
    order = sorted(shelves)
    for each in order:
        generator.shuffle(shelves[each])
    found: list[Record] = []
    while len(found) < count and any(shelves.values()):
        for each in order:
            if shelves[each] and len(found) < count:
                found.append(shelves[each].pop())
    return found
