"""Fetches options, settings and environment variables with their defaults: all, those for something, or one."""

from __future__ import annotations

from agent.evidence.retrieved import Retrieved
from agent.kinds.listing.assigned_values import find_assigned
from agent.kinds.listing.narrowing import (
    find_narrowing_terms,
    gather_entries,
    is_aside,
    keep_one_per_name,
    make_entry_ref,
    narrow_entries,
    order_by_kind,
)
from agent.kinds.listing.table_lookup import find_tables
from agent.kinds.listing.type_members import find_type, find_type_options
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
_ASKS_DEFAULTS = compile_pattern(
    r"(?i)(?:(?:what|which|list|show(?: me)?)(?: are)? )?(?:all )?(?:the )?default (?:\w+ )?(?:options|settings|values"
    r"|configuration|config)"
    r"(?: (?:are there|exist|do we have|(?:does|do) (?:it|we|[\w.-]+) have))?(?:,? and .{1,40})?"
)
_SAYS_TYPE = frozenset("the a class struct type interface object constructor new enum trait of for in".split())
_ALL: tuple[RegistrationKind, ...] = ("flag", "setting", "environment")


async def fetch_options(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """List the options that a question asks for; nothing where it names one that there is not."""
    parts = request.get("parts", {})
    if (own := await _fetch_own_options(code, parts.get("target", ""))).refs:
        return own
    if _ASKS_DEFAULTS.fullmatch(request["query"].strip(" ?.!")) and (held := await _fetch_defaults(code)).refs:
        return held
    kinds = _ALL if "name" in parts else _choose_kinds(parts.get("noun", "") or request["query"])
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
    narrowed = narrow_entries(found, terms)
    if not narrowed and _DEFAULTS.search(request["query"]):
        assigned = await find_assigned(code, terms)
        return await gather_entries(code, assigned, whole=len(assigned))
    return await gather_entries(code, order_by_kind(narrowed, kinds), whole=len(found))


async def _fetch_own_options(code: CodeSearch, target: str) -> Retrieved:
    """List what a type is set up with that the question names as the code spells it."""
    words = [word.strip("`'\"") for word in target.split() if word.lower() not in _SAYS_TYPE]
    name = words[0] if len(words) == 1 else ""
    owner = (
        await find_type(code, name) if name and not name.islower() and name.lower() != code.repository.lower() else None
    )
    refs = await find_type_options(code, owner) if owner is not None else []
    gathered = await gather_entries(code, refs, whole=len(refs))
    return Retrieved(refs=gathered.refs, totals=gathered.totals, facts={"tables": name} if refs else {})


async def _fetch_defaults(code: CodeSearch) -> Retrieved:
    """List what a table of defaults holds, such as `DEFAULTS` or `defaultOptions`."""
    for words in (["default"], ["default", "option"], ["default", "setting"], ["default", "config"]):
        tables = [one for one in await find_tables(code, words) if not is_aside(one.refs[0])]
        if tables:
            gathered = await gather_entries(code, tables[0].refs, whole=len(tables[0].refs))
            return Retrieved(refs=gathered.refs, totals=gathered.totals, facts={"tables": tables[0].name})
    return Retrieved(refs=())


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
