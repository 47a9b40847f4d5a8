"""Fetches a repository's registrations and assigned values, narrowed to the words of a question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from agent.evidence.refs import is_test_or_docs, make_definition_ref, make_lines_ref
from agent.evidence.requests import Retrieved
from agent.ports import CodeSearch
from agent.questions.terms import find_content_terms, match_terms, split_words
from agent.state import EvidenceRef, Lookup, RetrievalRequest
from indexer.text.linear_patterns import compile_pattern
from indexer.types import Match, RegistrationKind, RegistrationSite

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
_DEFAULTS = compile_pattern(r"(?i)\bdefaults?\b|standardwert|par d[ée]faut|por defecto|デフォルト|默认")
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
    """List what the question asks for; where nothing registered says its words, the values that the code assigns."""
    parts, question = request.get("parts", {}), request["query"]
    groups = _read_kinds(request["lookup"], question)
    if "name" in parts:
        found = await _list_entries(code, _OPTIONS)
        wanted = _fold(parts["name"])
        named = [ref for ref in found if wanted in map(_fold, ref["symbol"].split(","))]
        return await _gather(code, named or await find_assigned(code, [find_content_terms(parts["name"])]), len(found))
    if parts.get("value") == "constant":
        values = await find_assigned(code, _read_terms(parts, code.repository)[:1], least=_MIN_WORDS)
        return await _gather(code, values, len(values)) if values else Retrieved(refs=())
    is_default = request["lookup"] == "options" and _DEFAULTS.search(question) is not None
    if len(groups) > 1:
        return await _list_groups(code, groups, parts)
    for each in filter(None, (groups[0], _ALIKE.get(groups[0]))):
        found = await _list_entries(code, each)
        narrowed = _narrow(found, parts, code.repository)
        # What says some of the words, or of no value, is no default where the code sets something by that name.
        asked = _read_terms(parts, code.repository)
        is_said = not is_default or _keep_saying(narrowed[:1], next(iter(asked), frozenset()) - _OF_NUMBERS)
        is_known = not is_default or (is_said and any(ref["signature"] for ref in narrowed))
        assigned = [] if is_known else await find_assigned(code, asked)
        if narrowed and is_said and not assigned:
            return await _gather(code, narrowed, len(found))
    if is_default:
        return await _gather(code, assigned, len(assigned))
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
    """List things of several kinds, those of one kind after those of the other."""
    listed: list[EvidenceRef] = []
    whole = 0
    for group in groups:
        found = await _list_entries(code, group) or await _list_entries(code, _ALIKE.get(group, ()))
        narrowed = _narrow(found, parts, code.repository)
        listed, whole = [*listed, *narrowed], whole + len(found)
    return await _gather(code, listed, whole) if listed else Retrieved(refs=())


async def fetch_subclasses(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """List what inherits from the type that a question names, the direct ones first; nothing if it names none."""
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
    """Return what is registered, once for each name except routes; options by kind, those of the code first."""
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
    """Put the code first, then what serves to build it, then documentation."""
    is_build = ref["path"].startswith(".") or ref["path"].partition("/")[0] in _BUILD_FOLDERS
    return _is_beside(ref), is_build, ref["path"], ref["start_line"]


def _is_beside(ref: EvidenceRef) -> bool:
    return is_test_or_docs(ref["path"])


def _is_aside(ref: EvidenceRef) -> bool:
    """Whether an entry is in a test or an example; documentation is as good as code here."""
    return _is_beside(ref) and not ref["path"].lower().endswith(_PROSE)


async def _gather(code: CodeSearch, refs: Sequence[EvidenceRef], whole: int) -> Retrieved:
    """Return entries as evidence, those of tests last, with how many there are of which kind; `whole` before."""
    main = [ref for ref in refs if not _is_aside(ref)] or refs  # the whole repository may be an example
    asides = [ref for ref in refs if _is_aside(ref)] if main is not refs else []
    tests = {entry.path for entry in await code.files() if entry.source_type == "test"}
    totals = {"entries": len(main), "asides": len(asides), "whole": whole, "in files": len({r["path"] for r in main})}
    totals["in tests"] = int(bool(main) and all(ref["path"] in tests for ref in main))
    totals |= Counter(ref["kind"] for ref in main)
    return Retrieved(refs=[*main, *asides][:MAX_ENTRIES], totals=totals)


def _fold(name: str) -> str:
    """Write a name as `--max-depth`, `max_depth` and `MAX_DEPTH` are all written."""
    return name.strip(" `").partition(" ")[0].lstrip("-").replace("-", "_").lower()


def _read_terms(parts: Mapping[str, str], repository: str) -> tuple[frozenset[str], ...]:
    """Return the words that a list is narrowed by: all at first, then those of each thing that the question names."""
    said = parts.get("target", "")
    nothing = find_content_terms(repository) | _SAYS_NOTHING
    groups = (find_content_terms(text) - nothing for text in (said, *_BETWEEN.split(said)))
    return tuple(dict.fromkeys(filter(None, groups)))


def _narrow(refs: Sequence[EvidenceRef], parts: Mapping[str, str], repository: str) -> Sequence[EvidenceRef]:
    """Return the entries of a prefix, of a path of addresses, or that say the words of the question; maybe none.

    Where no entry says all of the words, each thing that the question names has its own entries.
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
    """Return the entries that say most of the words, in their names and help or else their paths, if enough do."""
    meanings = list_meanings(terms)
    for fields in (("symbol", "doc", "signature"), ("symbol", "doc", "signature", "path")):
        said = [count_meanings(" ".join(ref[name] for name in fields), meanings) for ref in refs]
        most = max(said, default=0)
        if most and most >= least * len(meanings):
            return [ref for ref, count in zip(refs, said, strict=True) if count == most]
    return []


_MIN_JOINED = 5  # letters of a word that is found in a longer one
_MAX_LINES = 2_000
_MIN_WORDS = 2  # of a name that a question spells out
_UNITS = frozenset(
    "ms millis milliseconds s sec secs seconds minutes mins hours days bytes kb mb default value".split()
)
_NOTHING = frozenset({"none", "null", "nil", '""', "''"})
_BOUNDS = frozenset("max maximum limit min minimum".split())
_NO_VALUES = frozenset({"()", "[]", "{}", "(", "["})
_MAX_SHOWN = 3  # places that set one thing
# Words that names shorten, or say otherwise; by stem.
_ALIASES = (
    frozenset({"db", "databas"}),
    frozenset({"auth", "authentication", "login"}),
    frozenset({"dir", "directory", "fold"}),
    frozenset({"mail", "email", "smtp"}),
    frozenset({"max", "maximum", "limit"}),
    frozenset({"min", "minimum"}),
    frozenset({"conn", "connection"}),
    frozenset({"pass", "password"}),
    frozenset({"color", "colour"}),
    frozenset({"log", "logg"}),
    frozenset({"numb", "num", "count"}),
)
_LITERAL = r"(?:[bfru]{0,2}[\"'\x60]|[(\[]|-?\d|true\b|false\b|none\b|null\b|nil\b"
_LITERAL += r"|(?:new\s+)?[a-z_][\w.]*(?:<\w*>)?\()"  # or a call
_CALL = compile_pattern(r"(?i)(?:new\s+)?[a-z_][\w.]*(?:<\w*>)?\(")
_HOLDS_VALUE = compile_pattern(r"[\"']|\b\d")
_CALL_LINES = 6
_TYPE = r"(?:\s+(?:u?int(?:8|16|32|64)?|float(?:32|64)|string|bool|time\.Duration))?"  # of Go, behind the name
_ASSIGNED = compile_pattern(
    rf"(?i)([A-Za-z_$][\w$]*){_TYPE}\s*(?::[^=\n]{{0,60}})?(?:=|:)\s*({_LITERAL}[^;\n]{{0,120}})"
)
_DEFINED = compile_pattern(r"^\s*#\s*define\s+(\w+)\s+(\S[^\n]{0,120})")
_REMARK = compile_pattern(r"(?:^;?|\s)\s*(?://|#|/\*)\s?(.*?)(?:\*/)?\s*$")


async def find_assigned(
    code: CodeSearch, alternatives: Sequence[frozenset[str]], *, least: int = 1
) -> list[EvidenceRef]:
    """Return the places that set what the question names, all of it or else each thing on its own.

    Their names say as many words as `least`.
    """
    whole, each = alternatives[:1], alternatives[1:]
    all_words = len(whole[0]) if each[1:] else least  # where it names several things
    found = [ref for terms in whole for ref in await _find_for(code, terms, all_words)]
    found = found or [ref for terms in each for ref in await _find_for(code, terms, least)]
    return list({(ref["path"], ref["start_line"]): ref for ref in found}.values())


async def _find_for(code: CodeSearch, terms: frozenset[str], least: int) -> list[EvidenceRef]:
    """Return the assignments whose names surely mean some words, those that say most, the code's before tests'."""
    ranked = sorted(await _rank_assignments(code, terms, least), key=lambda one: one[0])
    best = [ref for rank, ref in ranked if rank == ranked[0][0]][:_MAX_SHOWN]
    return [whole for ref in best if (whole := await _complete(code, ref)) is not None]


async def _complete(code: CodeSearch, ref: EvidenceRef) -> EvidenceRef | None:
    """Read a value to its end where it is a call; None where that holds no number or text."""
    value, end = ref["signature"], ref["start_line"]
    if _CALL.match(value) is None:
        return ref
    if value.endswith("("):
        below = (await code.read(ref["path"], end + 1, end + _CALL_LINES)).text.split("\n")
        for line in below:
            value, end = f"{value}{' ' * value.endswith(',')}{line.strip()}", end + 1
            if value.count("(") <= value.count(")"):
                break
        else:
            return None
        value = value.rstrip(" ;,")
    is_telling = _HOLDS_VALUE.search(value) is not None
    return {**ref, "signature": value, "end_line": end} if is_telling else None


async def _rank_assignments(
    code: CodeSearch, terms: frozenset[str], least: int
) -> list[tuple[tuple[bool, int, int, bool, bool, int], EvidenceRef]]:
    ranked: list[tuple[tuple[bool, int, int, bool, bool, int], EvidenceRef]] = []
    meanings = list_meanings(terms)
    said = sorted({each for same in meanings for each in same if each.isascii() and each.isalnum()})
    if not said:
        return ranked
    name = rf"\w{{0,60}}(?:{'|'.join(said)})\w{{0,60}}"
    pattern = rf"(?i)#\s*define\s+{name}\s+\S|(?:^|[^\w]){name}{_TYPE}\s*(?::[^=\n]{{0,60}})?[=:]\s*{_LITERAL}"
    for match in (await code.grep(pattern, limit=_MAX_LINES)).lines:
        ref = _read_assignment(match)
        if ref is None or ref["signature"] in _NO_VALUES:
            continue
        named = count_meanings(ref["symbol"].replace("_", " "), meanings)
        placed = count_meanings(f"{ref['symbol']} {ref['path']}".replace("_", " "), meanings)
        extra = sum(not any(one in word for one in said) for word in split_words(ref["symbol"]) if word not in _UNITS)
        missing = len(meanings) - named
        is_exact = not extra and named >= _MIN_WORDS and named >= missing
        is_nearly = missing == 1 and named > _MIN_WORDS
        is_placed = placed == len(meanings) and named >= missing and not extra
        bounds = [same for same in meanings if same & _BOUNDS]  # "max" is no word to do without
        is_bound = count_meanings(ref["symbol"].replace("_", " "), bounds) == len(bounds)
        is_meant = is_bound and (not missing or is_exact or is_nearly or is_placed)
        aside = is_test_or_docs(ref["path"])
        if named >= least and is_meant and not (aside and least > 1):
            is_default, is_empty = "default" in match.text.lower(), ref["signature"].lower() in _NOTHING
            is_empty = is_empty or _CALL.match(ref["signature"]) is not None
            ranked.append(((aside, -placed, -named, is_empty, not is_default, extra), ref))
    return ranked


def _read_assignment(match: Match) -> EvidenceRef | None:
    found = _DEFINED.search(match.text) or _ASSIGNED.search(match.text)
    if found is None or match.text.lstrip().startswith(("//", "*", "/*")):
        return None
    remark = _REMARK.search(found[2])
    behind = remark or _REMARK.search(match.text[found.end() :])
    value = (found[2][: remark.start()] if remark is not None else found[2]).strip().rstrip(",;")
    doc = behind[1] if behind is not None else ""
    return make_lines_ref(match.location, "entry", symbol=found[1], kind="value", signature=value, doc=doc)


def list_meanings(terms: frozenset[str]) -> list[frozenset[str]]:
    """Return each word with the others that mean the same."""
    return [next((same for same in _ALIASES if term in same), frozenset({term})) for term in sorted(terms)]


def count_meanings(text: str, meanings: Sequence[frozenset[str]]) -> int:
    """Count the meanings that a text says, in whatever word, and also within joined ones."""
    words = frozenset().union(*meanings)
    found = match_terms(text, words)
    missing = [word for word in words - found if len(word) >= _MIN_JOINED and word in text.lower()]
    if missing:  # names join words: TELNETCONSOLE_PORT
        parts = split_words(text)
        found |= {word for word in missing if any(part.startswith(word) or part.endswith(word) for part in parts)}
    return sum(bool(found & same) for same in meanings)
