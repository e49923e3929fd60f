"""The OpenAPI description: bodies and answers, from the same dataclasses that are read and sent."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter

from kernelsmith.service.wire import Request, ServerInfo, State

Schema = dict[str, Any]
"""JSON, as OpenAPI has it."""

_REFUSALS = {
    401: "No token, or nobody's.",
    403: "Not for this machine.",
    404: "There is none, or it is somebody else's.",
    408: "The body took too long.",
    409: "The key was used for something else, or the judge is of another version.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    422: "Something is wrong with the request; the message says what.",
    429: "Too much for now; Retry-After says when to come back.",
    503: "Nothing can be stored now; Retry-After says when to come back.",
}
_ALWAYS = (400, 401, 403, 422, 429)


def answers(name: str, *statuses: int) -> dict[int | str, Schema]:
    """What a route may answer: a value, or an error of one form."""
    found: dict[int | str, Schema] = {200: _answer("As asked for.", name)}
    for status in sorted({*_ALWAYS, *statuses}):
        kept = "Not over yet." if status == 202 else _REFUSALS.get(status, "Refused.")
        found[status] = _answer(kept, name if status == 202 else "Error")
    return found


def plain(about: str, *statuses: int) -> dict[int | str, Schema]:
    """A route that everybody may ask."""
    return {status: _answer(about, "Status") for status in (200, *statuses)}


def stream(*statuses: int) -> dict[int | str, Schema]:
    """A route that answers line by line."""
    found = answers("Ticket", *statuses)
    found[200] = {
        "description": "One ticket a line; empty lines mean nothing.",
        "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
    }
    return found


def text(about: str) -> dict[int | str, Schema]:
    """A route that answers in plain text."""
    found = answers("Status")
    found[200] = {"description": about, "content": {"text/plain": {"schema": {"type": "string"}}}}
    return found


def body(name: str) -> Schema:
    """The body of a route that reads it by itself."""
    content = {"application/json": {"schema": _ref(name)}}
    return {"requestBody": {"required": True, "content": content}}


def openapi(app: FastAPI) -> Schema:
    """The whole description, made once."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        parts = found.setdefault("components", {})
        parts["schemas"] = _components()
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, methods in found["paths"].items():
            for operation in methods.values():
                if path not in ("/healthz", "/readyz"):
                    operation["security"] = [{"token": []}]
        app.openapi_schema = found
    return app.openapi_schema


def _components() -> Schema:
    found: Schema = {}
    for kind in (Request, ServerInfo):
        schema = TypeAdapter(kind).json_schema(ref_template="#/components/schemas/{model}")
        found |= schema.pop("$defs", {})
        found[kind.__name__] = schema
    for each in found.values():
        _close(each)
    text, count = {"type": "string"}, {"type": "integer"}
    ticket = _object(
        id=text, state={"type": "string", "enum": list(State)}, attempts=count, message=text,
        cached={"type": "boolean"},
        evaluation={"anyOf": [{"type": "object"}, {"type": "null"}]},
    )  # fmt: skip
    id = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
    quarantined = _object(candidate=text, message=text, since={"type": "number"})
    backend = _object(name=text, devices=_list(text), posts=count, up=count)
    return found | {
        "Ticket": ticket,
        "Tickets": _object(requests=_list(_ref("Ticket"))),
        "Submission": _object(requests={**_list(_ref("Request")), "minItems": 1}),
        "Ids": _object(ids={**_list(id), "minItems": 1, "uniqueItems": True}),
        "Devices": _object(devices=_list(_ref("DeviceStatus"))),
        "Backends": _object(backends=_list(backend)),
        "Health": _object(status=text, devices={"type": "object"}, queued=count, quarantined=count),
        "Quarantine": _object(candidates=_list(quarantined)),
        "Released": _object(released=count),
        "Status": _object(status=text),
        "Error": _object(error=_object(code=text, message=text)),
    }


def _close(schema: Schema) -> None:
    """What is not named is refused; pydantic's description would let it pass."""
    if schema.get("type") == "object" and "properties" in schema:
        schema["additionalProperties"] = False


def _object(**properties: Schema) -> Schema:
    return {
        "type": "object", "properties": properties, "required": list(properties),
        "additionalProperties": False,
    }  # fmt: skip


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _answer(about: str, name: str) -> Schema:
    return {"description": about, "content": {"application/json": {"schema": _ref(name)}}}
