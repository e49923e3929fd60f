"""The page at ``/docs``: our OpenAPI description as plain HTML.

It loads nothing from anywhere: servers often stand where the network ends, and a script of somebody
else's would run beside our tokens.
"""

from collections.abc import Mapping
from html import escape
from typing import Any

_METHODS = ("get", "post", "delete")
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem;color:#222}
h2{font-size:1rem;margin:2rem 0 .3rem}code,b{font-family:ui-monospace,monospace}
b{background:#eef;padding:.1rem .4rem;border-radius:3px}
table{border-collapse:collapse}td{padding:.1rem 1rem .1rem 0;vertical-align:top}
@media(prefers-color-scheme:dark){body{background:#16181c;color:#ddd}b{background:#334}a{color:#8bf}}
"""


def page(described: Mapping[str, Any]) -> str:
    """Write a description, as of ``/openapi.json``, for people."""
    about = described["info"]
    title = escape(about["title"])
    calls = "".join(
        _call(method, path, operations[method])
        for path, operations in described["paths"].items()
        for method in _METHODS
        if method in operations
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
        f"<h1>{title} {escape(about['version'])}</h1><p>{escape(about['description'])} "
        f'For programs: <a href="openapi.json">openapi.json</a></p>{calls}</body></html>'
    )


def _call(method: str, path: str, operation: Mapping[str, Any]) -> str:
    rows = [
        (f"<code>{escape(each['name'])}</code> in the {escape(each['in'])}", _said(each))
        for each in operation.get("parameters", ())
    ]
    if body := operation.get("requestBody"):
        rows.append(("body", ", ".join(map(_shape, body["content"].values()))))
    for status, answer in operation["responses"].items():
        shapes = [_shape(each) for each in answer.get("content", {}).values()]
        rows.append((escape(status), " ".join([escape(answer.get("description", "")), *shapes])))
    table = "".join(f"<tr><td>{left}</td><td>{right}</td></tr>" for left, right in rows)
    said = escape(operation.get("description") or operation.get("summary", ""))
    return (
        f"<h2><b>{method.upper()}</b> <code>{escape(path)}</code></h2>"
        f"<p>{said}</p><table>{table}</table>"
    )


def _said(parameter: Mapping[str, Any]) -> str:
    shape = parameter.get("schema", {})
    bounds = ", ".join(f"{key} {shape[key]}" for key in ("minimum", "maximum") if key in shape)
    return escape(" ".join(filter(None, (parameter.get("description", ""), bounds))))


def _shape(content: Mapping[str, Any]) -> str:
    """A schema's name, or its kind; its fields are in the description for programs."""
    shape = content.get("schema", {})
    named = str(shape.get("$ref", "")).rpartition("/")[2]
    return f"<code>{escape(named or str(shape.get('type', 'any')))}</code>"
