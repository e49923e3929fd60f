"""Functional operators, by option: plain functions of tensors, wrapped as modules."""

import ast
import hashlib
from typing import cast

from kernelsmith.corpus.extract.emit import emit
from kernelsmith.corpus.extract.forest import Inside, Parsed
from kernelsmith.corpus.extract.slicer import Rejected, Slicer
from kernelsmith.corpus.store import Record
from kernelsmith.domain.codec import Json

_TENSOR = ("Tensor", "torch.Tensor", "'Tensor'", "'torch.Tensor'")


def operator_record(slicer: Slicer, parsed: Parsed, target: Inside, key: str) -> Record | None:
    """Extract a function whose arguments say that they are tensors; none for all others."""
    node = next((s for s in parsed.tree.body if isinstance(s, ast.FunctionDef)
                 and s.name == target.name), None)  # fmt: skip
    if node is None or node.name.startswith("test") or not node.args.args:
        return None
    said = {a.arg: ast.unparse(a.annotation) if a.annotation else "" for a in node.args.args}
    tensors = [name for name, annotation in said.items() if annotation in _TENSOR]
    required = node.args.args[: len(node.args.args) - len(node.args.defaults)]
    if not tensors or any(a.arg not in tensors for a in required) or node.args.vararg:
        return None
    key = f"{key}:{target.name}()"
    try:
        made = slicer.cut(target)
        text, name = emit(made)
    except Rejected as error:
        return Record(key=key, reason=error.reason, detail=error.detail[:300])
    arguments = ", ".join(a.arg for a in required)
    root = f"{name.title().replace('_', '')}Operator"
    text += (
        f"\n\nclass {root}(nn.Module):\n    def forward(self, {arguments}):\n"
        f"        return {name}({arguments})\n"
    )
    if "from torch import nn\n" not in text:
        text = f"from torch import nn\n{text}"
    data: dict[str, Json] = {
        "code": text, "root": root, "lines": text.count("\n"),
        "hash": hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:24],
        "init": {}, "forward": cast(Json, {a.arg: "Tensor" for a in required}), "shapes": {},
        "config": "", "config_class": "", "config_values": {}, "examples": [],
        "files": [target.module], "dropped": [], "refused": [], "operator": True,
    }  # fmt: skip
    return Record(key=key, data=data)
