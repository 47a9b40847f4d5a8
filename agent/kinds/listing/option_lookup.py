"""Fetches options, settings and environment variables with their defaults: all, those for something, or one."""

from __future__ import annotations

from agent.evidence.retrieved import Retrieved
from agent.kinds.listing.assigned_values import find_assigned
from agent.kinds.listing.narrowing import (
    find_narrowing_terms,
    gather_entries,
    keep_one_per_name,
    make_entry_ref,
    narrow_entries,
    narrow_to_sort,
    order_by_kind,
)
from agent.ports import CodeSearch
from agent.questions.terms import find_content_terms
from agent.state import EvidenceRef, RetrievalRequest
from indexer.text.linear_patterns import compile_pattern
from indexer.types import RegistrationKind

_ENVIRONMENT = compile_pattern(
    r"(?i)\benv(?:s|ironment)?\b|umgebungsvariabl|d['’]environnement|de entorno|環境変数|环境变量|env[ -]?vars?"
)
_FLAGS = compile_pattern(r"(?i)\bflags?\b|\bswitch(?:es)?\b|command[- ]?line|\bcli\b|schalter|drapeau|フラグ|命令行")
_SETTINGS = compile_pattern(
    r"(?i)\bsettings?\b|\bconfig|einstellung|réglage|ajustes|設定|设置|配置|\bknobs?\b|\bdefaults\b"
)
_DEFAULTS = compile_pattern(r"(?i)\bdefaults?\b|standardwert|par d[ée]faut|por defecto|デフォルト|默认")
_ALL: tuple[RegistrationKind, ...] = ("flag", "setting", "environment")


async def fetch_options(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """List the options that a question asks for; nothing where it names one that there is not."""
    parts = request.get("parts", {})
    kinds = _ALL if "name" in parts else _choose_kinds(request["query"])
    sites = await code.registrations(kinds)
    found = keep_one_per_name(map(make_entry_ref, sites))
    found = _drop_repeated_settings(found)
    if "name" in parts:
        named = _find_named(found, parts["name"])
        named = named or await find_assigned(code, [find_content_terms(parts["name"])])
        return await gather_entries(code, named, whole=len(found))
    if "prefix" in parts:
        beginning = _fold(parts["prefix"].strip("`"))
        found = [ref for ref in found if any(_fold(name).startswith(beginning) for name in ref["symbol"].split(","))]
        return await gather_entries(code, order_by_kind(found, kinds), whole=len(found))
    terms = find_narrowing_terms(parts, code.repository)
    narrowed = narrow_entries(narrow_to_sort(found, parts), terms)
    if not narrowed and _DEFAULTS.search(request["query"]):
        assigned = await find_assigned(code, terms)
        return await gather_entries(code, assigned, whole=len(assigned))
    return await gather_entries(code, order_by_kind(narrowed, kinds), whole=len(found))


def _choose_kinds(noun: str) -> tuple[RegistrationKind, ...]:
    if _ENVIRONMENT.search(noun):
        return ("environment",)
    if _FLAGS.search(noun):
        return ("flag",)
    return ("setting", "environment") if _SETTINGS.search(noun) else _ALL


def _drop_repeated_settings(refs: list[EvidenceRef]) -> list[EvidenceRef]:
    """Leave out settings that only hand on the environment variable of the same name."""
    variables = {ref["symbol"] for ref in refs if ref["kind"] == "environment"}
    return [ref for ref in refs if ref["kind"] != "setting" or ref["symbol"] not in variables]


def _find_named(refs: list[EvidenceRef], name: str) -> list[EvidenceRef]:
    """Return the options of a name, however it is spelt: `--max-depth`, `max_depth`, `MAX_DEPTH`."""
    wanted = _fold(name)
    return [ref for ref in refs if wanted and wanted in {_fold(part) for part in ref["symbol"].split(",")}]


def _fold(name: str) -> str:
    return name.strip().partition(" ")[0].lstrip("-").replace("-", "_").lower()
