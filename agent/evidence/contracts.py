"""Finds both ends of interfaces between programs: tables, topics, endpoints, variables, resources, packages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from agent.evidence.packages import match_packages
from agent.evidence.refs import is_test_or_docs, make_lines_ref
from agent.evidence.requests import NO_PLACE, Retrieved, decide_retrieval, request_kind
from agent.ports import CodeSearch
from agent.questions.intents.model import list_words, load_model
from agent.questions.terms import find_content_terms
from agent.state import EvidenceRef, RetrievalRequest, RouterDecision
from agent.text.escaping import format_code_span
from indexer.text.linear_patterns import Pattern, compile_pattern
from indexer.types import Registration, RegistrationKind, RegistrationSite

_MAX_LISTED = 400
_MAX_TRIED = 40  # words of a question
_LONGEST = 2_000  # characters


@dataclass(frozen=True, kw_only=True, slots=True)
class _Contract:
    """A kind of thing that several places share: the words that ask for it, and its registrations.

    `actions` are the uses at the places, in the order of an answer; `find_action` determines the
    use at one, and `find_name` of what. `asks` is the shortest question, `named` the form of its
    name, and `is_same` compares it with another. `stated` is a name next to the noun, which counts
    as one even if nothing has it.
    """

    asks: Pattern
    named: Pattern
    kinds: tuple[RegistrationKind, ...]
    actions: tuple[str, ...]
    find_action: Callable[[Registration], str]
    is_same: Callable[[str, str], bool]
    stated: Pattern | None = None
    find_name: Callable[[Registration], str] = attrgetter("name")


def _find_table_action(found: Registration) -> str:
    return "created" if found.kind == "table" else found.detail


def _find_topic_action(found: Registration) -> str:
    if found.kind == "task":
        return "consumed"
    return {"emitted": "produced", "handled": "consumed"}.get(found.detail, found.detail or "declared")


def _is_same_name(name: str, wanted: str) -> bool:
    folded, wanted = name.lower(), wanted.lower()
    return folded == wanted or ("." not in wanted and folded.rpartition(".")[2] == wanted)


def match_paths(name: str, wanted: str) -> bool:
    """Whether two endpoints may be the same: `GET /api/orders/{id}` and `/orders/42`.

    A placeholder matches any part of a path; one path may have an additional prefix, if more than
    the placeholder matches.
    """
    methods, path = _split_endpoint(name)
    other_methods, other = _split_endpoint(wanted)
    if methods and other_methods and not methods & other_methods:
        return False
    longer, shorter = sorted((path, other), key=len, reverse=True)
    extra = len(longer) - len(shorter)
    pairs = list(zip(longer[extra:], shorter, strict=True))
    if any(one != two and one and two for one, two in pairs):
        return False
    same = sum(one == two != "" for one, two in pairs)
    return same > 0 and (extra == 0 or (extra <= _MAX_PREFIX and same + (len(shorter) > 1) > 1 and all(longer[:extra])))


def _split_endpoint(name: str) -> tuple[frozenset[str], list[str]]:
    """Return the methods and parts of a path, empty if a part is substituted."""
    method, _, path = name.rpartition(" ")
    methods = frozenset(method.upper().split("|")) - {"ANY", ""}
    parts = [part.lower() for part in path.partition("?")[0].strip("/^$").split("/") if part]
    return methods, ["" if _PUT_IN.search(part) else part for part in parts]


_LED_PACKAGE = compile_pattern(
    r"(?i)\b(?:versi\w+\s+(?:of|von|de|du|do)|packages?|librar\w+|crates?|gems?|(?:packages?|librar\w+|crates?|gems?)\s+"
    r"(?:that\s+)?(?:depends?\s+on|needs?|requires?|uses?))\s+(?:the\s+)?[`'\"]?(@?\w[\w./@:-]*\w)"
)
_PACKAGE = compile_pattern(r"@?\w[\w./@:+-]*")
# "What does X depend on?", where nothing follows that depends on X.
_ASKS_REQUIREMENTS = compile_pattern(
    r"(?i)\bdo(?:es)?\s.+\s(?:depend\s+on|need|require|pull\s+in|bring\s+in)\s*(?:[?!.]|$|\b(?:in|at|for|to)\b)"
    r"|\bdependenc\w+\s+(?:of|for|do|does)\s|\bdependencies\s*(?:[?!.]|$)|\b(?:wovon|worauf)\b"
    r"|abhängigkeiten\s+(?:von|hat)|\bde\s+quoi\b|dépendances\s+d|\bde\s+qu[eé]\s+depende"
    r"|dependencias\s+(?:de|tiene)|dependências\s+(?:d|tem)|от\s+чего\s|зависимости\s|何に依存|の依存|依赖(?:什么|哪些|于什么|了哪)|的依赖"
    r"|무엇에\s*의존|의\s*의존"
)
_MAX_PREFIX = 3  # parts, such as /api/v1
_PUT_IN = compile_pattern(r"[{}<>:*\[\]$%]|^\d+$|^[0-9a-f-]{32,}$")
_CONTRACTS: Mapping[str, _Contract] = {
    "table": _Contract(
        asks=compile_pattern(r"(?i)\b(?:table|view|tabelle|tabla|tabela)\b|テーブル|数据表|таблиц|테이블"),
        named=compile_pattern(r"[\w$][\w.$-]*"),
        kinds=("table", "access"),
        actions=("created", "altered", "written", "read", "referenced", "dropped"),
        find_action=_find_table_action,
        is_same=_is_same_name,
        stated=compile_pattern(
            r"(?i)(?:\b(?:table|view|tabelle|tabla|tabela)|テーブル|数据表|таблиц\w*|테이블)\s+[`'\"]?(\w[\w.$-]*)"
        ),
    ),
    "topic": _Contract(
        asks=compile_pattern(
            r"(?i)\b(?:topic|queue|channel|exchange|stream|subject|jobs?\b|enqueue|thema|warteschlange|cola|fila)"
            r"|\bfile d|トピック|キュー|主题|队列|топик|очеред"
        ),
        named=compile_pattern(r"[\w$][\w.$:-]*"),
        kinds=("topic", "event", "task"),
        actions=("declared", "produced", "consumed"),
        find_action=_find_topic_action,
        is_same=_is_same_name,
        stated=compile_pattern(
            r"(?i)(?:\b(?:topic|queue|channel|exchange|stream|thema|cola|fila)|トピック|キュー|主题|队列|топик\w*)"
            r"\s+[`'\"]?(\w[\w.$:-]*)"
        ),
    ),
    "endpoint": _Contract(
        asks=compile_pattern(
            r"(?i)\b(?:calls?|called|callers?|consum|uses?\b|using|hits?\b|requests?\b|invok|fetch|aufruf|ruft|appelle|llama|chama"
            r"|serves?|provid|implement|handles?|answers?)|呼|调用|вызыва|호출"
        ),
        named=compile_pattern(r"(?:(?:GET|POST|PUT|PATCH|DELETE|HEAD)\s+)?/[\w{}<>:.*\[\]$/-]+"),
        kinds=("route", "client"),
        actions=("answered", "called"),
        find_action=lambda found: "called" if found.kind == "client" else "answered",
        is_same=match_paths,
        stated=compile_pattern(r"\b((?:GET|POST|PUT|PATCH|DELETE|HEAD)\s+/[\w{}<>:.*\[\]$/-]*)"),
    ),
    "variable": _Contract(
        asks=compile_pattern(
            r"(?i)\b(?:set|reads?|used|come|defined|gesetzt|gelesen|définie|lue)\b|設定|設置|读取|задан|чита"
        ),
        named=compile_pattern(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b"),
        kinds=("variable", "environment"),
        actions=("set", "read"),
        find_action=lambda found: "set" if found.kind == "variable" else "read",
        is_same=lambda name, wanted: name == wanted,
    ),
    "feature": _Contract(
        asks=compile_pattern(r"(?i)\b(?:feature|flag|toggle)"),
        named=compile_pattern(r"\w[\w.:/-]*"),
        kinds=("feature",),
        actions=("set", "read"),
        find_action=lambda found: found.detail,
        is_same=lambda name, wanted: name == wanted,
    ),
    "resource": _Contract(
        asks=compile_pattern(r"(?i)\b(?:services?|resources?|deployments?|dienste?|ressource|servicio|recurso)\b"),
        named=compile_pattern(r"\w[\w./-]*"),
        kinds=("service", "resource"),
        actions=("declared",),
        find_action=lambda _: "declared",
        is_same=_is_same_name,
        stated=compile_pattern(r"(?i)\b(?:service|resource|deployment|dienst|ressource)\s+[`'\"]?(\w[\w./-]*)"),
    ),
    "requirement": _Contract(
        asks=_ASKS_REQUIREMENTS,
        named=_PACKAGE,
        kinds=("dependency", "package"),
        actions=("required",),
        find_action=lambda _: "required",
        is_same=match_packages,
        stated=compile_pattern(
            r"(?i)\bdo(?:es)?\s(?:.+\s)?[`'\"]?((?:@\w|\w+-)[\w./@:-]*)[`'\"]?\s+(?:depend\s+on|need|require)\b"
        ),
        find_name=lambda found: "" if found.help == "locked" else found.handler.partition(" ")[0],
    ),
    "package": _Contract(
        asks=compile_pattern(
            r"(?i)\b(?:packages?|librar|crates?|gems?\b|depend|versi[oó]n|locked|pinned|abhäng|hängt|bibliothek|dépend)"
            r"|依存|バージョン|ライブラリ|依赖|版本|зависи|верси|библиотек|의존|버전"
        ),
        named=_PACKAGE,
        kinds=("dependency", "package"),
        actions=("declared", "locked", "needed"),
        find_action=lambda found: found.help or "declared",
        is_same=match_packages,
        stated=compile_pattern(
            r"(?i)\b(?:packages?|librar\w+|crates?|gems?)\s+(?:that\s+)?(?:depends?\s+on|needs?|requires?)\s+[`'\"]?(@?\w[\w./@:-]*)"
        ),
    ),
}
# Beginnings of the words that ask for one action.
_ASKED: Mapping[str, Pattern] = {
    "created": compile_pattern(
        r"(?i)\b(?:creat|defin|declar|angelegt|definier|erstell|créé|cread|criad)|定義|定义|созда|определ"
    ),
    "altered": compile_pattern(r"(?i)\b(?:alter|migrat)"),
    "written": compile_pattern(
        r"(?i)\b(?:writ|insert|updat|delet|modif|chang|fill|popul|schreib|geschrieben|écri|escri)|書|写入|пиш|запис"
    ),
    "read": compile_pattern(
        r"(?i)\b(?:reads?\b|reading|quer|select|fetch|liest|gelesen|lu\b|lue\b|lee\b|leíd)|読|読取|чита"
    ),
    "dropped": compile_pattern(r"(?i)\b(?:drop|remov)"),
    "declared": compile_pattern(r"(?i)\b(?:declar|defin)"),
    "produced": compile_pattern(
        r"(?i)\b(?:produc|publi|emit|enqueue|send|sent\b|writ|sende|envo|envi)|送信|发送|отправ|публик"
    ),
    "consumed": compile_pattern(
        r"(?i)\b(?:consum|subscri|listen|handl|receiv|read|konsum|empf|abonn|escuch)|受信|购读|订阅|消费|подпис|слуша|читает"
    ),
    "answered": compile_pattern(r"(?i)\b(?:serv|provid|implement|handl|answer)"),
    "called": compile_pattern(
        r"(?i)\b(?:call|consum|uses?\b|using|hits?\b|requests?\b|invok|fetch|aufruf|ruft|appelle|llama|chama)|呼|调用|вызыва|호출"
    ),
    "needed": compile_pattern(r"(?i)\b(?:depends? on|needs?|requires?|pulls?|brings?|hängt|dépend)|依存|依赖|зависи"),
    "set": compile_pattern(r"(?i)\b(?:set|come|defined|gesetzt|définie)\b|設定|設置|задан"),
}


async def route_contract(question: str, code: CodeSearch, *, is_of_past: bool = False) -> RouterDecision | None:
    """Look up both ends of the table, topic or package that a question names; None if it names none.

    If the question has the noun, but nothing has the name, nothing else is looked up. In a question
    about the past, versions are those of releases, and not of packages.
    """
    asked = question[:_LONGEST]
    for name, contract in _CONTRACTS.items():
        if not contract.asks.search(asked) or (is_of_past and name == "package"):
            continue
        words = [word.rstrip(".-:") for word in contract.named.findall(asked)[:_MAX_TRIED]]
        sites = await code.registrations(contract.kinds) if words else ()
        known = {each for site in sites for each in (site.registration.name, contract.find_name(site.registration))}
        actions = [action for action in contract.actions if action in _ASKED and _ASKED[action].search(asked)]
        if name == "variable" and not any(site.registration.kind == "variable" for site in sites):
            continue
        if contract.is_same is match_packages:
            declaring = {site.registration.handler for site in sites if site.registration.kind == "dependency"}
            own = declaring if name == "requirement" else ()
            words = [one for one in words if one != code.repository and (one in own or _may_be_package(one, asked))]
        named = [
            word
            for word in words
            if not contract.asks.search(word) and any(contract.is_same(each, word) for each in known)
        ]
        if named and (name not in {"resource", "topic"} or actions):
            if "needed" in actions:  # a manifest needs what it declares
                actions = ["declared", "needed"]
            parts = {"contract": name, "name": max(named, key=len), "actions": " ".join(actions)}
            request = request_kind("contracts", question, parts)
            return decide_retrieval([request], fast_path=True, reasoning=request["reasoning"])
        stated = contract.stated.search(asked) if contract.stated is not None else None
        if stated is None:
            continue
        rest = asked.replace(stated[1], "", 1)
        actions = [action for action in actions if _ASKED[action].search(rest)]
        is_of_packages = contract.is_same is match_packages
        actions = list(_CONTRACTS["package"].actions) if is_of_packages else actions
        if actions and await _is_nothing_else(stated[1], code, are_known=bool(known)):
            noun = "package" if is_of_packages else name
            claim = f"{NO_PLACE} {noun} {format_code_span(stated[1])} is {' or '.join(actions)}"
            return decide_retrieval([], fast_path=True, reasoning=f"{claim} was found", unknown=[stated[1]])
    return None


def _may_be_package(word: str, asked: str) -> bool:
    """Whether a word may name a package: many are called `send`, `which` or `config`."""
    if any(found[1] == word for found in _LED_PACKAGE.finditer(asked)):
        return bool(find_content_terms(word))
    said = list_words(word)
    return bool(said) and said[0] not in load_model().common


async def _is_nothing_else(word: str, code: CodeSearch, *, are_known: bool) -> bool:
    """Whether a word next to a noun is unknown: neither in the language nor in a definition."""
    is_word = not find_content_terms(word) or (
        word.isalpha() and any(pattern.match(word) for pattern in _ASKED.values())
    )
    if is_word or await code.definitions(word.rpartition(".")[2]):
        return False
    return are_known or "/" in word or not (await code.grep(re.escape(word), limit=1)).lines


def request_packages(question: str, name: str = "") -> RouterDecision:
    """Ask where a package is declared and locked; without a name, list the project's dependencies."""
    parts = {"contract": "package" if name else "requirement", "name": name, "actions": ""}
    request = request_kind("contracts", question, parts)
    return decide_retrieval([request], fast_path=True, reasoning=request["reasoning"])


async def fetch_contract(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """Find the places that use the named thing, by their use."""
    parts = request["parts"]
    contract, wanted = _CONTRACTS[parts["contract"]], parts["name"]
    found = await code.registrations(contract.kinds if wanted else contract.kinds[:1])
    sites = [site for site in found if not wanted or contract.is_same(contract.find_name(site.registration), wanted)]
    asked = parts["actions"].split()
    if not sites:  # a package that needs none
        contract, asked = _CONTRACTS["package"], [*contract.actions]
        sites = [site for site in found if contract.is_same(site.registration.name, wanted)]
    refs = _make_refs(sites, contract, asked or contract.actions) or _make_refs(sites, contract, contract.actions)
    found_actions = {contract.find_action(site.registration) for site in sites}
    missing = [action for action in asked if action not in found_actions]
    is_written = not wanted or parts["contract"] in {"endpoint", "requirement"}
    facts = {
        "name": (wanted or code.repository) if is_written else _name_best(sites),
        "contract": parts["contract"],
        "missing": " ".join(missing if len(missing) == len(asked) or "needed" not in asked else ()),
    }
    return Retrieved(refs=refs[:_MAX_LISTED], totals=Counter(ref["kind"] for ref in refs), facts=facts)


def _make_refs(sites: Sequence[RegistrationSite], contract: _Contract, actions: Collection[str]) -> list[EvidenceRef]:
    refs = [
        make_lines_ref(
            site.location,
            "entry",
            symbol=site.registration.name if action == "required" else _name_site(site.registration),
            kind=action,
            signature=_describe_site(site.registration),
            doc=site.registration.handler if action == "required" else "",
        )
        for site in sites
        if (action := contract.find_action(site.registration)) in actions
    ]
    return sorted(refs, key=lambda ref: (contract.actions.index(ref["kind"]), is_test_or_docs(ref["path"])))


def _name_site(found: Registration) -> str:
    return found.name if found.help == "locked" else found.handler or found.name


def _describe_site(found: Registration) -> str:
    """Return the notable facts about a place: the assigned value, the exact call, a version."""
    if found.help == "locked" and found.handler:
        return f"{found.detail} through {found.handler}"
    if found.kind in {"route", "client"}:
        return found.name
    return "" if found.kind in {"access", "topic", "event", "feature"} else found.detail


def _name_best(sites: Sequence[RegistrationSite]) -> str:
    names = Counter(site.registration.name for site in sites)
    return names.most_common(1)[0][0] if names else ""
