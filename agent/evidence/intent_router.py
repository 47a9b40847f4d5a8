"""Chooses lookups by the likeliest intent of a question, and by its names in the code."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import PurePosixPath

from agent.evidence.contracts import request_packages, route_contract
from agent.evidence.coverage import find_left_out
from agent.evidence.definitions import KnownName, find_known_name, find_name_alike, is_defined_exactly
from agent.evidence.packages import MANIFESTS, find_declarations
from agent.evidence.path_lookup import FilePathLookup, find_folder
from agent.evidence.refs import is_test_or_docs
from agent.evidence.requests import (
    NOT_INDEXED,
    decide_retrieval,
    request_kind,
    request_lookup,
    request_outline,
    request_search,
)
from agent.evidence.search import find_said
from agent.ports import CodeSearch, SymbolIndex
from agent.questions.asked_times import AskedTimes, read_times
from agent.questions.intents.model import SURE, IntentName, RankedIntent, list_words, load_model
from agent.questions.intents.placeholders import mask_question
from agent.questions.literals import find_literals
from agent.questions.mentions import find_mentions, is_code_like, normalize_name
from agent.questions.scopes import FOLDERS, list_place_words, read_scope
from agent.questions.terms import find_content_terms, is_common_noun
from agent.state import Lookup, RetrievalRequest, RouterDecision
from indexer.text.linear_patterns import compile_pattern
from indexer.types import FileEntry, SourceType

LIKELY = 0.35  # the least confidence with which an intent's lookup is made
MAX_TRIED = 8  # words of a question that are looked up as names
MAX_ALIKE = 3  # files of one name that are shown side by side
MAX_NAMES = 2  # that one lookup is made for
_NAMED = 0.4  # the least confidence that a question asks for a name where a common word stands
_SHORTEST_NAME = 3
_UNSURE = 0.7  # confidence below which an answer offers other meanings
_MIN_SAID = 3  # words that distinguish a reported symptom from other texts
_ABOUT_PLACES: frozenset[IntentName] = frozenset({"changes", "origin", "people"})
_OF_PAST: frozenset[IntentName] = frozenset({"changes", "origin"})
_MAYBE_PAST: frozenset[IntentName] = frozenset({"changes", "origin", "people", "reason"})
_MAYBE = 0.25  # the least confidence that a question is about the past with which git is asked beside the search
_MAX_SAID = 3  # words of it that are looked for in messages of commits
_LONGEST = 2_000  # characters
_VALUES = frozenset({"constant", "macro"})
STARTING = find_content_terms("start begin entry main bootstrap execution")
_PROGRAM = find_content_terms("program app application server process point execution service tool cli bot")
# Words between a name and its use.
_BESIDE = frozenset("for in inside within as with at on from für im als mit pour dans avec para en con como".split())
_USES: frozenset[IntentName] = frozenset({"callers", "absence"})
_NAMING: frozenset[IntentName] = frozenset({"callers", "callees", "tests", "definition"})
_PLAIN = compile_pattern(r"[A-Za-z_\x{C0}-\x{24F}][A-Za-z0-9_\x{C0}-\x{24F}]+")
_UNITS = find_content_terms("seconds minutes hours days milliseconds ms bytes kb mb unit")
_SETS = compile_pattern(r"(?i)\b(?:set|assigned|configured|overridden)\b")
_CALLS = compile_pattern(
    r"(?i)\b(?:call|invo[kc]|hit|aufruf|aufgerufen|ruft|ruf\b|gerufen|appel|llama|invoca|cham)|呼|调用|调|вызыв|зов|호출|부르"
)
_DEFAULTS = compile_pattern(
    r"(?i)\bdefault|standardwert|par défaut|por defecto|padrão|デフォルト|默认|по умолчанию|기본"
)
_PREFIX = re.compile(r"(?<![\w*])`?(?P<prefix>[A-Za-z][A-Za-z0-9_]{0,60}(?:_(?=\*|[`?!.\s]|$)|(?=\*)))")
# Words between a list's noun and its purpose.
_LINKS = compile_pattern(
    r"(?i)\b(?:for|of|in|on|under|below|about|with|concerning|regarding|does|do|has|have|controls?|configures?|influences?"
    r"|affects?|limits?|enables?|disables?|governs?|changes?|für|von|zu|hat|haben|pour|du|des|para|sobre|tiene|для|про)\b"
)
_OF_ONE = compile_pattern(r"(?i)\b(?:an?|each|every|eine?|une?|una?|uma?)\s+$")
_VERSIONS = compile_pattern(r"(?i)\bversi[oó]ns?\b|バージョン|版本|верси|버전")
# The subjects of lists, by the prefixes of their words.
_DEPENDENCIES = compile_pattern(
    r"(?i)\b(?:dependenc|depend|librar|libs?\b|packages?\b|gems?\b|crates?\b|requirements\b|abhängig|bibliothek|hängt"
    r"|dépendance|bibliothèque|librairie|dependencia|librerías?|dependência|dipendenz)|依存|ライブラリ|依赖|第三方库|зависимост"
    r"|библиотек|의존|라이브러리"
)
_SUBTYPES = compile_pattern(
    r"(?i)\b(?:sub ?(?:class|type)|inherit|extend|implement|deriv|descend|child|children|unterklasse|erb(?:en|t)\b"
    r"|abgeleitet|sous-classe|hérit|subclase|hereda)|サブクラス|継承|子类|继承|실현|하위 클래스|наследу|подкласс"
)
_OPTIONS = compile_pattern(
    r"(?i)\b(?:env|option|opcion|opç|setting|config|flag|switch|knob|umgebung|einstellung|schalter|paramètre|réglage"
    r"|ajuste|variables? d|variáve)"
    r"|オプション|設定|環境変数|选项|配置|环境变量|命令行参数|опци|настро|переменн|옵션|설정|환경"
)
_ENTRY_POINTS = compile_pattern(
    r"(?i)\b(?:end ?point|route|rout|ruta|rota|url|command|befehl|kommando|task|job|cron|aufgabe|tâche|tarea|tarefa"
    r"|event|signal|ereignis|événement|model|modell|table|tabelle|tabla|tabela|entit|service|dienste?\b|servicio|serviço"
    r"|rpcs?\b|grpc|resource|ressource|recurso|terraform|kubernetes|k8s|topic|queue|channels?\b|ind(?:exes|ices)\b|views?\b"
    r"|schemas?\b|graphql|protobuf|messages?\b|workflow|pipeline|ci\b|schedul|mutations?\b)|エンドポイント|コマンド|タスク|イベント"
    r"|モデル|テーブル|ルート|接口|路由|命令|任务|事件|模型|数据表|эндпоинт|команд|задач|событ|модел|таблиц|маршрут|엔드포인트|명령"
    r"|작업|이벤트|모델|테이블|라우트"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedIntent:
    """The likeliest intent of a question, its probability, the names of code in it, and other possible intents.

    `subject` is its subject in its own words; `source_types` are those it is limited to.
    """

    name: IntentName
    confidence: float
    names: tuple[KnownName, ...]
    subject: str
    alternatives: tuple[IntentName, ...]
    source_types: tuple[SourceType, ...] = ()

    @property
    def is_sure(self) -> bool:
        """Whether no other meaning needs to be offered."""
        return self.confidence >= SURE


async def recognise_intent(question: str, code: SymbolIndex) -> AskedIntent:
    """Rank the intents of a question, with the code's names in it masked.

    A question for uses outside or inside of the tests is one for uses.
    """
    scope = read_scope(question)
    if scope.source_types:
        limited = await _recognise(scope.rest, code)
        if limited.name in _USES and (limited.names or _find_unknown(scope.rest, limited.name)):
            return replace(limited, source_types=scope.source_types)
    return await _recognise(question, code)


async def _recognise(question: str, code: SymbolIndex) -> AskedIntent:
    asked, model = question[:_LONGEST], load_model()
    names = await _find_names(asked, code)
    ranked = model.rank(asked, lambda word: "xsym" if word in names else "")
    if not names:
        names, ranked = await _try_common_words(asked, code, ranked)
    if not names:
        ranked = _leave_out(ranked, "callees")
    best = ranked[0]
    return AskedIntent(
        name=best.name,
        confidence=best.confidence,
        names=tuple({known.name: known for known in names.values()}.values()),
        subject=model.find_subject(asked, best.name),
        alternatives=tuple(one.name for one in ranked[1:3]),
    )


def _leave_out(ranked: Sequence[RankedIntent], name: IntentName) -> list[RankedIntent]:
    """Rank without impossible intents, such as the callees of an unknown name."""
    rest = [one for one in ranked if one.name != name]
    share = sum(one.confidence for one in rest) or 1.0
    return [replace(one, confidence=one.confidence / share) for one in rest]


async def _find_names(question: str, code: SymbolIndex) -> dict[str, KnownName]:
    """Look up words typed as code, and uncommon plain words in this exact case."""
    mentions, common = find_mentions(question), load_model().common
    typed = {part for name in mentions.names for part in name.split(".")}
    text = question
    for mention in mentions.paths:  # of which no folder is a name on its own
        text = text.replace(mention.path, " ")
    plain = [word for word in _PLAIN.findall(text) if len(word) >= _SHORTEST_NAME and word.lower() not in common]
    found: dict[str, KnownName] = {}
    for word in list(dict.fromkeys([*mentions.names, *mentions.words, *plain]))[:MAX_TRIED]:
        if word in mentions.names:
            known = await find_known_name(word, code)
        elif word in typed:
            continue
        else:
            known = await _find_plain_name(word, question, code)
        if known is not None:
            found[word] = known
    return found


async def _find_plain_name(word: str, question: str, code: SymbolIndex) -> KnownName | None:
    """Look up a word not typed as code; in Ruby a name may end in a mark."""
    for spelt in (f"{word}!", word):
        if spelt not in question:
            continue
        named = [one for one in await code.definitions(spelt) if one.symbol.name == spelt]
        # A word of prose that only a test defines is a word of prose.
        if any(not (word.islower() and is_test_or_docs(one.path)) for one in named):
            return KnownName(name=spelt)
    return None


async def _try_common_words(
    question: str, code: SymbolIndex, ranked: list[RankedIntent]
) -> tuple[dict[str, KnownName], list[RankedIntent]]:
    """Treat a common word as a name where the question asks for one: "who calls send?"."""
    best, names = ranked, dict[str, KnownName]()
    if ranked[0].confidence >= _NAMED and ranked[0].name not in _NAMING | {
        "absence",
        "explanation",
        "overview",
        "place",
        "people",
    }:
        return names, best
    is_of_whole = ranked[0].name == "overview" and ranked[0].confidence >= SURE  # "what does this project do?"
    plain = [] if _list_typed(question) else list(dict.fromkeys(_PLAIN.findall(question)))
    for word in plain[: 2 * MAX_TRIED]:
        known = await _find_plain_name(word, question, code) if len(word) >= _SHORTEST_NAME else None
        if known is None or (is_of_whole and is_common_noun(word, question)):
            continue
        tried = load_model().rank(question, lambda one, name=word: "xsym" if one == name else "")  # type: ignore[misc]
        is_better = not names or tried[0].confidence > best[0].confidence
        subject = load_model().find_subject(question, tried[0].name).split()
        beside = {word, *list_place_words(question), *FOLDERS}
        others = [one for one in subject if one not in beside and len(one) >= _SHORTEST_NAME and _PLAIN.fullmatch(one)]
        is_alone = not others  # "handle retries" is no name
        is_asked = tried[0].name in _NAMING | _USES or (tried[0].name == "explanation" and subject == [word])
        if is_alone and is_asked and tried[0].confidence >= LIKELY and is_better:
            best, names = tried, {word: known}
    return names, best


async def route_comparison(question: str, code: CodeSearch) -> RouterDecision | None:
    """Show the difference between two versions, whatever the question asks about them."""
    if not read_times(question).is_comparison:
        return None
    asked = await recognise_intent(question, code)
    return await _route_kind(question, replace(asked, name="changes"), code)


async def route_intent(question: str, asked: AskedIntent, code: CodeSearch) -> RouterDecision | None:
    """Choose the requests of the likeliest intent; None if it has no lookup, or the question names nothing for it."""
    if (chosen := await route_contract(question, code, is_of_past=asked.name in _OF_PAST)) is not None:
        return chosen
    if asked.name == "origin" and not asked.is_sure:  # history misleads where it is not meant
        asked = replace(asked, name=asked.alternatives[0])
    rare = [word for word in question.split() if list_words(word) and list_words(word)[0] not in load_model().common]
    if (
        _VERSIONS.search(question)
        and asked.name not in _OF_PAST
        and (chosen := await _route_version(question, rare, code))
    ):
        return chosen
    choose = _CHOICES.get(asked.name)
    if choose is None or asked.confidence < LIKELY:
        return None
    return await choose(question, asked, code)


def list_meanings(asked: AskedIntent) -> list[str]:
    """List the other possible questions about a name, if the intent is uncertain."""
    if asked.confidence >= _UNSURE or len(asked.names) != 1:
        return []
    shown = _ALIKE.get(asked.name, asked.name)
    others = dict.fromkeys(_ALIKE.get(one, one) for one in asked.alternatives)
    return [_MEANINGS[one].format(asked.names[0].name) for one in others if one != shown and one in _MEANINGS]


async def _route_uses(question: str, asked: AskedIntent, code: CodeSearch) -> RouterDecision | None:
    """Look up the uses of the named thing; for an undefined word, the lines that contain it."""
    if _SETS.search(question) and (chosen := await _route_set(question, asked, code)) is not None:
        return chosen
    question = read_scope(question).rest if asked.source_types else question
    inside = await _find_scope(question, code)
    lookup: Lookup = "callers" if asked.name == "callers" and _CALLS.search(question) else "usages"
    known = asked.names[:MAX_NAMES]
    word = "" if known else _find_unknown(question, asked.name)
    if inside and (word in inside or await find_folder(code, word) in inside):
        word = ""
    is_more = not asked.is_sure and asked.subject.isascii() and len(asked.subject.split()) > MAX_NAMES
    if is_more and not word and all(known.name.isalpha() and known.name.islower() for known in asked.names):
        return None  # one of several common words
    if word and (alike := await _find_alike(word, code)) is not None:
        known = (alike,)
    requests = [request_name(lookup, one, inside, asked.source_types) for one in known]
    if not requests and not word and inside:
        importers = request_lookup("usages", inside[0], reasoning="who imports the file")
        requests = [{**importers, "path": inside[0]}]
    if requests:
        return decide_retrieval(requests, fast_path=True, reasoning="uses of a name")
    if (
        word
        and not (await code.grep(re.escape(word), limit=1)).lines
        and (chosen := await _route_version(question, [word], code))
    ):
        return chosen
    uses = request_name("usages", KnownName(name=word), inside, asked.source_types)
    return decide_retrieval([uses], fast_path=True, reasoning="uses of a word", unknown=[word]) if word else None


async def _route_place(question: str, asked: AskedIntent, code: CodeSearch) -> RouterDecision | None:  # noqa: ARG001
    """Show where the program as a whole starts, which the overview of the repository knows."""
    terms = find_content_terms(question)
    is_of_start = not asked.names and terms & STARTING and terms <= STARTING | _PROGRAM
    return _decide_kind("overview", question, {}) if is_of_start else None


async def _route_set(question: str, asked: AskedIntent, code: CodeSearch) -> RouterDecision | None:
    """Show the declaration, constant or variable that sets the one name in a question."""
    if (declared := await _route_declared(question, asked, code)) is not None:
        return declared
    if len(asked.names) != 1:
        return None
    defined = await code.definitions(asked.names[0].name)
    if not defined or any(one.symbol.kind not in _VALUES for one in defined):
        return None
    exact = request_name("definition", asked.names[0])
    return decide_retrieval([exact], fast_path=True, reasoning="what sets a name")


async def _find_alike(word: str, code: CodeSearch) -> KnownName | None:
    """Return definitions with a similar name, if no line has the word itself."""
    is_there = (await code.grep(rf"\b{re.escape(word)}\b", limit=1)).lines
    return None if is_there else await find_name_alike(word, code)


def _find_unknown(question: str, intent: IntentName) -> str:
    """Return the one undefined name that the question is about: a library, a setting."""
    if typed := _list_typed(question):
        return typed[0]
    subject = load_model().find_subject(question, intent).split()
    for said in (takewhile(lambda word: word not in _BESIDE, subject), subject):
        words = [normalize_name(word) for word in said if list_words(word) and word.isascii()]
        rare = [word for word in words if word.lower() not in load_model().common or is_code_like(word)]
        if rare:
            return rare[0] if len(rare) == 1 and len(rare[0]) >= _SHORTEST_NAME else ""
    return ""


def _list_typed(question: str) -> list[str]:
    """Return the names typed as code, except file names."""
    mentions = find_mentions(question)
    return [name for name in mentions.names if mask_question(name) != "xpath"]


async def _find_scope(question: str, code: CodeSearch) -> list[str]:
    """Find the question's files and folders: its paths, else one named by a word."""
    written = [mention.path for mention in find_mentions(question).paths]
    names = FilePathLookup(await code.files() if written else (), written)
    found = [entry.path for path in written for entry in choose_files(names.find_alike(path), 0)[:1]]
    named = written or list(list_place_words(question))
    return found or [folder for path in named if (folder := await find_folder(code, path))]


def request_name(
    lookup: Lookup, known: KnownName, inside: Sequence[str] = (), source_types: Sequence[SourceType] = ()
) -> RetrievalRequest:
    """Look up a name, and for calls limit them to some files, folders or kinds of file."""
    request = request_lookup(lookup, known.name, reasoning=f"the question asks for {lookup} of a name")
    if known.module:
        request["patterns"] = [f"*/{known.module}/*", f"*/{known.module}.*"]
    return {**request, "folders": list(inside), "source_types": list(source_types)}


def asks_for_dependencies(question: str) -> bool:
    """Whether a question has a word for libraries, or for being in need of something."""
    return _DEPENDENCIES.search(question) is not None


async def _route_name(question: str, asked: AskedIntent, code: CodeSearch) -> RouterDecision | None:
    """Look up the one name of a question; for an undefined one, its likeliest meanings."""
    if _SETS.search(question) and (chosen := await _route_set(question, asked, code)) is not None:
        return chosen
    inside = [] if asked.name == "definition" else await _find_scope(question, code)
    word = _find_unknown(question, asked.name) if not asked.names and not inside else ""
    if word and (alike := await _find_alike(word, code)) is not None:
        asked = replace(asked, names=(alike,))
    if len(asked.names) == 1:
        is_more = asked.name == "definition" and not asked.is_sure and len(asked.subject.split()) > 1
        if is_more and "callers" not in asked.alternatives:
            return None
        exact = request_name("usages" if is_more else _BY_NAME[asked.name], asked.names[0], inside)
        return decide_retrieval([exact], fast_path=True, reasoning="a question about one name")
    if not word or find_mentions(question).codes:
        return None
    requests = [request_search(word, reasoning="the name is not defined here")]
    if asked.name == "definition":
        requests.append(request_lookup("attribute", word, reasoning="the name may be an attribute of a class"))
    return decide_retrieval(requests, fast_path=False, reasoning="a name that is not defined", unknown=[word])


async def _route_declared(question: str, asked: AskedIntent, code: CodeSearch) -> RouterDecision | None:
    """Show the declaration of the setting, the variable of the environment or the option that a question names."""
    named = [*find_mentions(question).names, *(known.name for known in asked.names), asked.subject]
    wanted = {_fold(name) for name in named if name}
    sites = await code.registrations(("setting", "environment", "flag"))
    name = next((site.registration.name for site in sites if _fold(site.registration.name) in wanted), "")
    beside = find_content_terms(question) - find_content_terms(f"{name} default value set option flag variable")
    is_said_of_more = _fold(name).isalpha() and len(beside) > 1  # `--answers`, of "answers at the same time"
    return _decide_kind("options", question, {"name": name}) if name and not is_said_of_more else None


async def _route_value(question: str, asked: AskedIntent, code: CodeSearch) -> RouterDecision | None:
    """Show a declaration, the version of a library, or the default of an option."""
    if (chosen := await _route_set(question, asked, code)) is not None:
        return chosen
    if _VERSIONS.search(question):
        return await _route_version(question, asked.subject.split(), code)
    default = _DEFAULTS.search(question)
    if default is None and _OPTIONS.search(question) is None:
        return None
    if default is not None and (typed := find_mentions(question).names):
        return _decide_kind("options", question, {"name": typed[0]})
    target = question[default.end() :].strip(" ?!.") if default is not None else asked.subject
    target = target if find_content_terms(target) - _UNITS else question  # "timeout default, in seconds"
    return _decide_kind("options", question, {"target": target, "value": "default"})


async def _route_version(question: str, words: Sequence[str], code: CodeSearch) -> RouterDecision | None:
    """Show where the manifests name the library whose version is wanted."""
    for word in words:
        if declared := await find_declarations(code, normalize_name(word)):
            return request_packages(question, declared[0].registration.name)
    return None


async def _route_listing(question: str, asked: AskedIntent, code: CodeSearch) -> RouterDecision | None:
    """List dependencies, subclasses, options, or registrations."""
    if asks_for_dependencies(question) and not asked.names and await code.registrations(MANIFESTS):
        return request_packages(question)
    if _SUBTYPES.search(question) and asked.names:
        return _decide_kind("lists", question, {"base": asked.names[0].name})
    noun = _OPTIONS.search(question)
    lookup: Lookup = "options" if noun is not None else "entry_points"
    noun = noun or _ENTRY_POINTS.search(question)
    if noun is not None and _OF_ONE.search(question[: noun.start()]) is not None:
        return None  # "what statuses can a job have"
    if noun is None:
        place = await _find_common_place(question, code)
        return await _route_contents(place, replace(asked, subject=place), code) if place else None
    return _decide_kind(lookup, question, await _read_narrowing(question, asked, noun.start(), code))


async def _read_narrowing(question: str, asked: AskedIntent, noun: int, code: CodeSearch) -> dict[str, str]:
    """Read the limits of a list: a prefix, a place, the words after the noun; its sort comes before."""
    if prefix := _PREFIX.search(question):
        return {"prefix": prefix["prefix"]}
    after = question[noun:]
    link = _LINKS.search(after)
    target = next(iter(await _find_scope(question, code)), after[link.end() :].strip(" ?!.") if link else "")
    before = question[:noun].lower()
    sort = " ".join(word for word in asked.subject.split() if word.lower() in before)
    return {name: said for name, said in (("target", target), ("sort", sort)) if said}


def _fold(name: str) -> str:
    return name.strip("`").lstrip("-").replace("-", "_").lower()


async def _route_kind(question: str, asked: AskedIntent, code: CodeSearch) -> RouterDecision | None:
    """Request the lookup for a kind of question with special answers."""
    is_of_whole = asked.name != "overview" or is_common_noun(asked.subject, question)
    if not is_of_whole and await is_defined_exactly(asked.subject, code):
        return None
    times = read_times(question) if asked.name in _ABOUT_PLACES else AskedTimes(parts={}, rest=question)
    if asked.name == "people" and "count" not in times.parts:
        times = AskedTimes(parts={}, rest=question)
    written = [
        f"{at.path}:{at.start_line}-{at.end_line}" if at.start_line else at.path
        for at in find_mentions(times.rest).paths
    ]
    place = await _find_common_place(times.rest, code) if asked.name in _ABOUT_PLACES else ""
    is_counted = "count" in times.parts  # "the last five commits" contains few words of a target
    subject = place or ("" if is_counted else load_model().find_subject(times.rest, asked.name))
    target = next(iter([*written, *(known.name for known in asked.names)]), subject)
    parts = {**times.parts, "target": target} if target else times.parts
    return _decide_kind("changes" if is_counted else _KINDS[asked.name], question, parts)


async def request_history(question: str, code: CodeSearch) -> list[RetrievalRequest]:
    """Ask git as well as the search, for a model that reads both, if a question may be about the past."""
    ranked = load_model().rank(question[:_LONGEST])
    if sum(one.confidence for one in ranked if one.name in _MAYBE_PAST) < _MAYBE:
        return []
    asked = await recognise_intent(question, code)
    decision = await _route_kind(question, replace(asked, name="changes"), code)
    words = " ".join(sorted(find_content_terms(question))[:_MAX_SAID])
    requests = decision["requests"] if decision is not None else []
    return [{**one, "parts": {**one.get("parts", {}), "words": words}} for one in requests]


async def _find_common_place(question: str, code: CodeSearch) -> str:
    """Return the folder or file that a common word names in a place position: "in the parser"."""
    for word in list_place_words(question, is_loose=True):
        if not _PLAIN.fullmatch(word):
            continue
        stems = {PurePosixPath(entry.path).stem.lower() for entry in await code.files()}
        if word.lower() in stems or await find_folder(code, word) is not None:
            return word
    return ""


def _decide_kind(lookup: Lookup, question: str, parts: Mapping[str, str]) -> RouterDecision:
    request = request_kind(lookup, question, parts)
    return decide_retrieval([request], fast_path=True, reasoning=request["reasoning"])


async def _route_contents(question: str, asked: AskedIntent, code: CodeSearch) -> RouterDecision | None:
    """List the contents of a file or a folder; None for anything else."""
    written = next((mention.path for mention in find_mentions(question).paths), asked.subject)
    target = written or await _find_common_place(question, code)
    if not target or len(asked.subject.split()) > 1:
        return None
    entries = choose_files(FilePathLookup(await code.files(), [target]).find_alike(target), 0)
    if entries:
        outlines = [request_outline(entry.path, reasoning="a file that the question names") for entry in entries]
        return decide_retrieval(outlines, fast_path=True, reasoning="a file by name")
    folder = await find_folder(code, target)
    if folder is None:
        is_left_out = await find_left_out(code, target) is not None
        return decide_retrieval([], fast_path=True, reasoning=NOT_INDEXED, unknown=[target]) if is_left_out else None
    decision = _decide_kind("outline", target, {"target": target})
    decision["requests"][0]["path"] = folder
    return decision


def choose_files(alike: Sequence[FileEntry], line: int) -> list[FileEntry]:
    """Choose the files that a path may mean: those with the line, code first."""
    long_enough = [entry for entry in alike if entry.lines >= line]
    return sorted(long_enough or alike, key=lambda entry: is_test_or_docs(entry.path))[:MAX_ALIKE]


async def _route_prose(question: str, asked: AskedIntent, code: CodeSearch) -> RouterDecision | None:  # noqa: ARG001
    """Put documentation first for a question that names no code."""
    if [known.name for known in asked.names] == [asked.subject] and asked.name == "explanation":
        exact = request_name("definition", asked.names[0])
        return decide_retrieval([exact], fast_path=True, reasoning="a question about one name")
    if find_mentions(question).anything or find_literals(question):
        return None
    decision = _decide_kind("prose", question, {})
    return {**decision, "fast_path": False}


async def _route_reported(question: str, asked: AskedIntent, code: CodeSearch) -> RouterDecision | None:
    """Find a reported symptom in the code; else show the code that fails."""
    is_telling = len(asked.subject.split()) >= _MIN_SAID
    said = await find_said(code, [asked.subject], is_evident=False) if is_telling else ""
    if said:
        message = request_lookup("message", said, reasoning="what the error says")
        return decide_retrieval([message], fast_path=False, reasoning="a reported error")
    requests = [request_name("definition", known) for known in asked.names[:MAX_NAMES]]
    requests.append(request_search(question, reasoning="what is said of the failure"))
    return decide_retrieval(requests, fast_path=False, reasoning="a reported failure") if asked.names else None


# Intents that lead to the same lookup, and the plainest wording of what each asks for.
_ALIKE: Mapping[IntentName, IntentName] = {
    "absence": "callers",
    "place": "definition",
    "explanation": "definition",
    "origin": "changes",
}
_MEANINGS: Mapping[IntentName, str] = {
    "callers": "who uses `{}`?",
    "callees": "what does `{}` call?",
    "tests": "which tests cover `{}`?",
    "definition": "where is `{}` defined?",
    "people": "who wrote `{}`?",
    "changes": "when was `{}` changed?",
}
_KINDS: Mapping[IntentName, Lookup] = {
    "people": "people",
    "origin": "changes",
    "command": "commands",
    "overview": "overview",
    "changes": "changes",
}
_BY_NAME: Mapping[IntentName, Lookup] = {"callees": "callees", "tests": "tests", "definition": "definition"}
_CHOICES: Mapping[IntentName, Callable[[str, AskedIntent, CodeSearch], Awaitable[RouterDecision | None]]] = {
    **dict.fromkeys(("callers", "absence"), _route_uses),
    **dict.fromkeys(_BY_NAME, _route_name),
    **dict.fromkeys(_KINDS, _route_kind),
    **dict.fromkeys(("explanation", "reason", "comparison", "add_another"), _route_prose),
    "place": _route_place,
    "error": _route_reported,
    "value": _route_value,
    "contents": _route_contents,
    "listing": _route_listing,
}
