"""The models of this machine's Ollama: examined if no model is set, and never used unasked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from agent.llm.providers import add_scheme

_TIMEOUT_SECONDS = 0.5  # a server on the same machine answers at once
_PORT = 11434
_LARGEST = 1_000_000  # bytes of one answer
_LOOPBACK = frozenset({"", "0.0.0.0", "127.0.0.1", "::", "::1", "localhost"})  # noqa: S104 - where a server listens


async def list_ollama_models(host: str = "") -> Sequence[str]:
    """List the chat models of this machine's Ollama; none if it does not answer, or `host` is another machine."""
    found = await _fetch(host, "GET", "/api/tags")
    models = found.get("models")
    names = [one.get("name") for one in models if isinstance(one, dict)] if isinstance(models, list) else []
    return [name for name in names if isinstance(name, str) and "embed" not in name]


async def read_context_length(model: str, host: str = "") -> int | None:
    """Return the context length of a model of this machine's Ollama; None if unknown."""
    found = await _fetch(host, "POST", "/api/show", {"model": model})
    known = found.get("model_info")
    lengths = known.items() if isinstance(known, dict) else ()
    return next((value for key, value in lengths if key.endswith(".context_length") and isinstance(value, int)), None)


async def _fetch(host: str, method: str, path: str, body: Mapping[str, str] | None = None) -> Mapping[str, Any]:
    """Ask the server; nothing if there is none, it is another kind, or its address cannot be read."""
    import httpx

    try:
        address = urlsplit(add_scheme(host) or "http://")
        if (address.hostname or "") not in _LOOPBACK:
            return {}
        url = f"http://127.0.0.1:{address.port or _PORT}{path}"
        async with (
            httpx.AsyncClient(timeout=_TIMEOUT_SECONDS, trust_env=False) as client,
            client.stream(method, url, json=body) as response,
        ):
            said = bytearray()
            async for piece in response.aiter_bytes():
                said += piece
                if len(said) > _LARGEST:
                    return {}
        found = json.loads(said)
    except (httpx.HTTPError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
