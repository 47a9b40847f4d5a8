"""Fetches a repository's registrations, narrowed to the words of a question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from agent.evidence.refs import is_test_or_docs, make_definition_ref, make_lines_ref
from agent.evidence.requests import Retrieved
from agent.ports import CodeSearch
from agent.questions.terms import find_content_terms, match_terms
from agent.state import EvidenceRef, Lookup, RetrievalRequest
from indexer.text.linear_patterns import compile_pattern
from indexer.types import RegistrationKind, RegistrationSite

MAX_ENTRIES = 400  # that are kept; a list that is longer is counted, and cut
_REPEATED = frozenset({"route", "table", "job", "resource", "service", "topic"})  # the same name may stand for several
_DECLARED = "declared"  # of an event: where it is made, as opposed to handled
_NO_DEFAULT = "takes a value"  # what tables of C say of an option
_OPTIONS: tuple[RegistrationKind, ...] = ("flag", "setting", "environment")
# The kinds that a noun of the question stands for; the first that fits.
_NOUNS: Mapping[Lookup, Mapping[str, tuple[RegistrationKind, ...]]] = {
    "options": {
        r"\bfeature[- ]?(?:flag|toggle|switch)|\btoggles?\b": ("feature",),
        r"\benv(?:s|ironment)?\b|umgebungsvariabl|d['’]environnement|de entorno|環境変数|环境变量|env[ -]?vars?": (
            "environment",
        ),
        r"\bflags?\b|\bswitch(?:es)?\b|command[- ]?line|\bcli\b|schalter|drapeau|フラグ|命令行": ("flag",),
        r"\bsettings?\b|\bconfig|einstellung|réglage|ajustes|設定|设置|配置|\bknobs?\b|\bdefaults\b": (
            "setting",
            "environment",
        ),
        "": _OPTIONS,
    },
    "entry_points": {
        r"task|worker|aufgabe|tâche|tarea|タスク|任务|задач|작업": ("task",),
        r"\bcron|schedul": ("task",),
        r"(?:\bci\b|pipeline|workflow|github action|gitlab)(?:\s+jobs?)?": ("job",),
        r"\bjobs?\b": ("job", "task"),
        r"command|befehl|kommando|commande|comando|コマンド|命令|команд|명령": ("command",),
        r"event|signal|ereignis|événement|señal|イベント|事件|listener|hook|событ|이벤트": ("event",),
        r"\btables?\b|\bviews?\b|tabelle|tablas?\b|tabela|テーブル|数据表|таблиц|테이블": ("table",),
        r"model|entit|modell|modèle|モデル|模型|модел|모델": ("model",),
        r"\bind(?:ex|exes|ices)\b": ("index",),
        r"\brpcs?\b|\bgrpc|procedure": ("rpc",),
        r"\bservices?\b|dienste?\b|servicios?\b|serviços?\b|サービス|сервис|服务": ("service",),
        r"\bschemas?\b|\btypes?\b|\bmessages?\b": ("type",),
        r"\bresources?\b|terraform|kubernetes|\bk8s\b|\bmanifests?\b|ressource|recurso|ресурс": ("resource",),
        r"\btopics?\b|\bqueues?\b|\bchannels?\b": ("topic",),
        r"end ?point|\broutes?\b|\burls?\b|\bapis?\b|\bpaths?\b|\bquer(?:y|ies)\b|mutation": ("route",),
        "": ("route",),
    },
}
_PATTERNS = {
    lookup: [(compile_pattern(f"(?i){words}"), kinds) for words, kinds in nouns.items()]
    for lookup, nouns in _NOUNS.items()
}
# Many call either by the other's name.
_ALIKE: Mapping[tuple[RegistrationKind, ...], tuple[RegistrationKind, ...]] = {
    ("task",): ("command",),
    ("job", "task"): ("command",),
    ("command",): ("task",),
    ("table",): ("model",),
    ("model",): ("table",),
    ("service",): ("rpc", "resource"),
    ("rpc",): ("service", "route"),
    ("route",): ("rpc",),
    ("topic",): ("event",),
    ("event",): ("topic",),
}
# Separators between the nouns of one question: "tables and endpoints", "services, resources and CI jobs".
_JOINS = compile_pattern(
    r"(?i)\s*(?:,|/|&|\+|\band\b|\bor\b|\bund\b|\boder\b|\bet\b|\bou\b|\by\b|\be\b|и|と|和)[\s,]*(?:\w+\s+){0,2}"
)
_SAYS_NOTHING = find_content_terms(
    "it this that the project repository app application service server tool library program package bot module"
    " available supported system everything all default value set use have there setting option flag"
    " read take know support accept understand respect expose"
    " env environment variable var second minute hour millisecond"
    " cli binary executable command line website site codebase"
)
_OF_NUMBERS = find_content_terms("number count amount many much")
_BETWEEN = compile_pattern(r"(?i)\s*(?:,|;|/|\band\b|\bor\b|\bund\b|\boder\b|\bet\b|\bou\b)\s*")
_BUILD_FOLDERS = frozenset("extras scripts tools contrib ci hack devtools build etc".split())
_PROSE = (".md", ".mdx", ".rst", ".txt", ".adoc", ".markdown")


async def fetch_registered(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """List the requested registrations; for a value, only the entries that have one and contain all of the words."""
    parts = request.get("parts", {})
    groups = _read_kinds(request["lookup"], request["query"])
    if "name" in parts:
        found = await _list_entries(code, _OPTIONS)
        wanted = _fold(parts["name"])
        named = [ref for ref in found if wanted in map(_fold, ref["symbol"].split(","))]
        return await _gather(code, named, len(found)) if named else Retrieved(refs=())
    if len(groups) > 1:
        return await _list_groups(code, groups, parts)
    for each in filter(None, (groups[0], _ALIKE.get(groups[0]))):
        found = await _list_entries(code, each)
        narrowed = _narrow(found, parts, code.repository)
        if "value" in parts:
            asked = next(iter(_read_terms(parts, code.repository)), frozenset[str]()) - _OF_NUMBERS
            narrowed = [ref for ref in _keep_saying(narrowed, asked) if ref["signature"]]
        if narrowed:
            return await _gather(code, narrowed, len(found))
    return Retrieved(refs=())


def _read_kinds(lookup: Lookup, question: str) -> list[tuple[RegistrationKind, ...]]:
    """Return the kinds to list: that of the first noun, and those joined to it."""
    patterns = _PATTERNS[lookup]
    if lookup == "options":
        return [next(kinds for pattern, kinds in patterns if pattern.search(question))]
    found = sorted(
        (at.start(), at.end(), kinds) for pattern, kinds in patterns for at in pattern.finditer(question) if at[0]
    )
    groups = [kinds for _, _, kinds in found[:1]]
    for (_, end, _), (start, _, kinds) in pairwise(found):
        if start >= end and kinds not in groups:
            if not _JOINS.fullmatch(question[end:start].lstrip("s")):
                break
            groups.append(kinds)
    return groups or [patterns[-1][1]]


async def _list_groups(
    code: CodeSearch, groups: Sequence[tuple[RegistrationKind, ...]], parts: Mapping[str, str]
) -> Retrieved:
    """List things of several kinds, kind by kind."""
    listed: list[EvidenceRef] = []
    whole = 0
    for group in groups:
        found = await _list_entries(code, group) or await _list_entries(code, _ALIKE.get(group, ()))
        narrowed = _narrow(found, parts, code.repository)
        listed, whole = [*listed, *narrowed], whole + len(found)
    return await _gather(code, listed, whole) if listed else Retrieved(refs=())


async def fetch_subclasses(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """List the subclasses of the type in the question, direct ones first; nothing if it names none."""
    base = request.get("parts", {}).get("base", "").strip("`")
    found = await code.subclasses(base) if base else ()
    refs: list[EvidenceRef] = [
        {**make_definition_ref(one.definition, "entry"), "signature": "" if one.is_direct else one.base}
        for one in found
    ]
    gathered = await _gather(code, refs, len(refs))
    direct = sum(not ref["signature"] for ref in gathered.refs[: gathered.totals["entries"]])
    return Retrieved(refs=gathered.refs, totals={**gathered.totals, "direct": direct}, facts={"base": base})


async def _list_entries(code: CodeSearch, kinds: Sequence[RegistrationKind]) -> list[EvidenceRef]:
    """Return the registrations, once per name except routes; options by kind, those of code first."""
    found = [_make_entry_ref(site) for site in await code.registrations(kinds)]
    if _REPEATED & set(kinds):
        return found
    found.sort(key=lambda ref: (_is_aside(ref), ref["signature"] != _DECLARED, not ref["signature"], _is_beside(ref)))
    first: dict[tuple[str, str], EvidenceRef] = {}
    for ref in found:  # the most telling place, with details from the others
        held = first.setdefault((ref["kind"], ref["symbol"]), ref)
        held["doc"] = held["doc"] or ("" if _is_aside(ref) else ref["doc"])
    if not set(kinds) <= set(_OPTIONS):
        return list(first.values())
    # A setting that hands on the environment variable of its name is listed as that alone.
    listed = [ref for (kind, name), ref in first.items() if kind != "setting" or ("environment", name) not in first]
    return sorted(listed, key=lambda ref: ([*kinds].index(ref["kind"]), *_rank_place(ref)))  # type: ignore[arg-type]


def _make_entry_ref(site: RegistrationSite) -> EvidenceRef:
    found = site.registration
    detail = found.handler if found.kind in {"route", "command"} else found.detail or found.handler
    if found.kind == "event" and found.detail != _DECLARED:
        detail = found.handler or found.detail
    said = found.help
    if detail == _NO_DEFAULT:
        detail, said = "", said or detail
    return make_lines_ref(site.location, "entry", symbol=found.name, kind=found.kind, doc=said, signature=detail)


def _rank_place(ref: EvidenceRef) -> tuple[bool, bool, str, int]:
    """Put code first, then build files, then documentation."""
    is_build = ref["path"].startswith(".") or ref["path"].partition("/")[0] in _BUILD_FOLDERS
    return _is_beside(ref), is_build, ref["path"], ref["start_line"]


def _is_beside(ref: EvidenceRef) -> bool:
    return is_test_or_docs(ref["path"])


def _is_aside(ref: EvidenceRef) -> bool:
    """Whether an entry is in a test or an example; documentation counts as code here."""
    return _is_beside(ref) and not ref["path"].lower().endswith(_PROSE)


async def _gather(code: CodeSearch, refs: Sequence[EvidenceRef], whole: int) -> Retrieved:
    """Collect entries as evidence, tests last, with counts by kind; `whole` comes first."""
    main = [ref for ref in refs if not _is_aside(ref)] or refs  # the whole repository may be an example
    asides = [ref for ref in refs if _is_aside(ref)] if main is not refs else []
    tests = {entry.path for entry in await code.files() if entry.source_type == "test"}
    totals = {"entries": len(main), "asides": len(asides), "whole": whole, "in files": len({r["path"] for r in main})}
    totals["in tests"] = int(bool(main) and all(ref["path"] in tests for ref in main))
    totals |= Counter(ref["kind"] for ref in main)
    return Retrieved(refs=[*main, *asides][:MAX_ENTRIES], totals=totals)


def _fold(name: str) -> str:
    """Fold the spellings `--max-depth`, `max_depth` and `MAX_DEPTH` of a name."""
    return name.strip(" `").partition(" ")[0].lstrip("-").replace("-", "_").lower()


def _read_terms(parts: Mapping[str, str], repository: str) -> tuple[frozenset[str], ...]:
    """Return the words that narrow a list: all at first, then those of each thing in the question."""
    said = parts.get("target", "")
    nothing = find_content_terms(repository) | _SAYS_NOTHING
    groups = (find_content_terms(text) - nothing for text in (said, *_BETWEEN.split(said)))
    return tuple(dict.fromkeys(filter(None, groups)))


def _narrow(refs: Sequence[EvidenceRef], parts: Mapping[str, str], repository: str) -> Sequence[EvidenceRef]:
    """Return the entries with a prefix, an address path, or the words of the question; maybe none.

    If no entry has all of the words, each name in the question gets its own entries.
    """
    if "prefix" in parts:
        beginning = _fold(parts["prefix"])
        return [ref for ref in refs if any(_fold(name).startswith(beginning) for name in ref["symbol"].split(","))]
    path = next(
        (word.strip("`'\"*/") for word in parts.get("target", "").split() if word.lstrip("`'\"").startswith("/")), ""
    )
    if below := [ref for ref in refs if path and f"/{path}/" in f"{ref['symbol']}/"]:
        return below
    refs = _keep_saying(refs, find_content_terms(parts.get("sort", ""))) or refs
    whole, *each = _read_terms(parts, repository) or [frozenset[str]()]
    if not whole:
        return refs
    kept = _keep_saying(refs, whole) or [ref for terms in each[1:] and each for ref in _keep_saying(refs, terms)]
    return [ref for ref in refs if ref in kept] or _keep_saying(refs, whole, least=0.5)


def _keep_saying(refs: Sequence[EvidenceRef], terms: frozenset[str], *, least: float = 1.0) -> list[EvidenceRef]:
    """Return the entries with most of the words, in their names and help or else their paths, if enough match."""
    for fields in (("symbol", "doc", "signature"), ("symbol", "doc", "signature", "path")):
        said = [len(match_terms(" ".join(ref[name] for name in fields), terms)) for ref in refs]
        most = max(said, default=0)
        if most and most >= least * len(terms):
            return [ref for ref, count in zip(refs, said, strict=True) if count == most]
    return []
