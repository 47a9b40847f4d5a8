"""Finds both ends of what programs agree on: tables, topics, endpoints, variables of the environment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from agent.evidence.refs import is_test_or_docs, make_lines_ref
from agent.evidence.requests import Retrieved, decide_retrieval, request_kind
from agent.ports import CodeSearch, SymbolIndex
from agent.state import EvidenceRef, RetrievalRequest, RouterDecision
from indexer.text.linear_patterns import Pattern, compile_pattern
from indexer.types import Registration, RegistrationKind, RegistrationSite

_MOST_LISTED = 400
_MOST_TRIED = 40  # words of a question
_LONGEST = 2_000  # characters


@dataclass(frozen=True, kw_only=True, slots=True)
class _Contract:
    """A kind of thing that several places share: the words that ask for it, and its registrations.

    `actions` are the uses at the places, in the order of an answer; `find_action` determines the use at one. `asks` is
    the shortest question, `named` the form of its name, and `is_same` compares it with another.
    """

    asks: Pattern
    named: Pattern
    kinds: tuple[RegistrationKind, ...]
    actions: tuple[str, ...]
    find_action: Callable[[Registration], str]
    is_same: Callable[[str, str], bool]


def _find_table_action(found: Registration) -> str:
    return "created" if found.kind == "table" else found.detail


def _find_topic_action(found: Registration) -> str:
    return {"emitted": "produced", "handled": "consumed"}.get(found.detail, found.detail or "declared")


def _is_same_name(name: str, wanted: str) -> bool:
    folded, wanted = name.lower(), wanted.lower()
    return folded == wanted or ("." not in wanted and folded.rpartition(".")[2] == wanted)


def match_paths(name: str, wanted: str) -> bool:
    """Tell whether two endpoints may be one: `GET /api/orders/{id}` and `/orders/42`.

    What is put in stands for any part of a path; one may have a prefix that the other lacks, if more than that fits.
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
    return same > 0 and (
        extra == 0 or (extra <= _MOST_PREFIX and same + (len(shorter) > 1) > 1 and all(longer[:extra]))
    )


def _split_endpoint(name: str) -> tuple[frozenset[str], list[str]]:
    """Return the methods and the parts of a path, empty if something is put in."""
    method, _, path = name.rpartition(" ")
    methods = frozenset(method.upper().split("|")) - {"ANY", ""}
    parts = [part.lower() for part in path.partition("?")[0].strip("/^$").split("/") if part]
    return methods, ["" if _PUT_IN.search(part) else part for part in parts]


_MOST_PREFIX = 3  # parts, such as /api/v1
_PUT_IN = compile_pattern(r"[{}<>:*\[\]$%]|^\d+$|^[0-9a-f-]{32,}$")
_CONTRACTS: Mapping[str, _Contract] = {
    "table": _Contract(
        asks=compile_pattern(r"(?i)\b(?:table|view|tabelle|tabla|tabela)\b|テーブル|数据表|таблиц|테이블"),
        named=compile_pattern(r"[\w$][\w.$-]*"),
        kinds=("table", "access"),
        actions=("created", "altered", "written", "read", "referenced", "dropped"),
        find_action=_find_table_action,
        is_same=_is_same_name,
    ),
    "topic": _Contract(
        asks=compile_pattern(
            r"(?i)\b(?:topic|queue|channel|exchange|stream|subject|thema|warteschlange|cola|fila|file d)"
            r"|トピック|キュー|主题|队列|топик|очеред"
        ),
        named=compile_pattern(r"[\w$][\w.$:-]*"),
        kinds=("topic", "event"),
        actions=("declared", "produced", "consumed"),
        find_action=_find_topic_action,
        is_same=_is_same_name,
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
        r"(?i)\b(?:produc|publi|emit|send|sent\b|writ|sende|envo|envi)|送信|发送|отправ|публик"
    ),
    "consumed": compile_pattern(
        r"(?i)\b(?:consum|subscri|listen|handl|receiv|read|konsum|empf|abonn|escuch)|受信|购读|订阅|消费|подпис|слуша|читает"
    ),
    "answered": compile_pattern(r"(?i)\b(?:serv|provid|implement|handl|answer)"),
    "called": compile_pattern(
        r"(?i)\b(?:call|consum|uses?\b|using|hits?\b|requests?\b|invok|fetch|aufruf|ruft|appelle|llama|chama)|呼|调用|вызыва|호출"
    ),
    "set": compile_pattern(r"(?i)\b(?:set|come|defined|gesetzt|définie)\b|設定|設置|задан"),
}


async def route_contract(question: str, code: SymbolIndex) -> RouterDecision | None:
    """Look up both ends of the table, topic, endpoint or variable that a question names; None if it names none."""
    asked = question[:_LONGEST]
    for name, contract in _CONTRACTS.items():
        if not contract.asks.search(asked):
            continue
        words = [word.rstrip(".-:") for word in contract.named.findall(asked)[:_MOST_TRIED]]
        sites = await code.registrations(contract.kinds) if words else ()
        known = {site.registration.name for site in sites}
        if name == "variable" and not any(site.registration.kind == "variable" for site in sites):
            continue
        named = [
            word
            for word in words
            if not contract.asks.search(word) and any(contract.is_same(each, word) for each in known)
        ]
        if named:
            actions = [action for action in contract.actions if action in _ASKED and _ASKED[action].search(asked)]
            parts = {"contract": name, "name": max(named, key=len), "actions": " ".join(actions)}
            request = request_kind("contracts", question, parts)
            return decide_retrieval([request], fast_path=True, reasoning=request["reasoning"])
    return None


async def fetch_contract(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """Find the places that have to do with what a request names, by what they do with it."""
    parts = request["parts"]
    contract, wanted = _CONTRACTS[parts["contract"]], parts["name"]
    found = await code.registrations(contract.kinds)
    sites = [site for site in found if contract.is_same(site.registration.name, wanted)]
    asked = parts["actions"].split()
    refs = _make_refs(sites, contract, asked or contract.actions) or _make_refs(sites, contract, contract.actions)
    others = Counter(contract.find_action(site.registration) for site in sites)
    facts = {
        "name": parts["name"] if parts["contract"] == "endpoint" else _name_best(sites),
        "contract": parts["contract"],
    }
    facts["missing"] = " ".join(action for action in asked if not others[action])
    return Retrieved(refs=refs[:_MOST_LISTED], totals=Counter(ref["kind"] for ref in refs), facts=facts)


def _make_refs(sites: Sequence[RegistrationSite], contract: _Contract, actions: Collection[str]) -> list[EvidenceRef]:
    refs = [
        make_lines_ref(
            site.location,
            "entry",
            symbol=site.registration.handler or site.registration.name,
            kind=contract.find_action(site.registration),
            signature=_describe_site(site.registration),
        )
        for site in sites
        if contract.find_action(site.registration) in actions
    ]
    return sorted(refs, key=lambda ref: (contract.actions.index(ref["kind"]), is_test_or_docs(ref["path"])))


def _describe_site(found: Registration) -> str:
    """Return what is worth saying of a place: the value that is set, what is called exactly."""
    if found.kind in {"route", "client"}:
        return found.name
    return "" if found.kind in {"access", "topic", "event"} else found.detail


def _name_best(sites: Sequence[RegistrationSite]) -> str:
    names = Counter(site.registration.name for site in sites)
    return names.most_common(1)[0][0] if names else ""
