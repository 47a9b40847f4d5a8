"""Finds both ends of what programs agree on: which code creates, reads and changes a table."""

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
_WORD = compile_pattern(r"[\w$][\w.$-]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Contract:
    """A sort of thing that several places agree on: the nouns that ask for it, and where it is registered.

    `find_action` names what a place does with it; `actions` are those there are, in the order of an answer.
    """

    noun: Pattern
    kinds: tuple[RegistrationKind, ...]
    actions: tuple[str, ...]
    find_action: Callable[[Registration], str]


def _find_table_action(found: Registration) -> str:
    return "created" if found.kind == "table" else found.detail


_CONTRACTS: Mapping[str, _Contract] = {
    "table": _Contract(
        noun=compile_pattern(r"(?i)\b(?:table|view|tabelle|tabla|tabela)\b|テーブル|数据表|таблиц|테이블"),
        kinds=("table", "access"),
        actions=("created", "altered", "written", "read", "referenced", "dropped"),
        find_action=_find_table_action,
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
        r"(?i)\b(?:reads?\b|reading|quer|select|fetch|liest|gelesen|lu\b|lue\b|lee\b|leíd)|読|读取|чита"
    ),
    "dropped": compile_pattern(r"(?i)\b(?:drop|remov)"),
}


async def route_contract(question: str, code: SymbolIndex) -> RouterDecision | None:
    """Look up both ends of the table that a question names; None where it names none that is here."""
    for name, contract in _CONTRACTS.items():
        if not contract.noun.search(question):
            continue
        known = {_fold(site.registration.name) for site in await code.registrations(contract.kinds)}
        known |= {name.rpartition(".")[2] for name in known}
        words = [word.rstrip(".-") for word in _WORD.findall(question)[:_MOST_TRIED]]
        named = [word for word in words if _fold(word) in known and not contract.noun.fullmatch(word)]
        if named:
            actions = [action for action in contract.actions if action in _ASKED and _ASKED[action].search(question)]
            parts = {"contract": name, "name": max(named, key=len), "actions": " ".join(actions)}
            request = request_kind("contracts", question, parts)
            return decide_retrieval([request], fast_path=True, reasoning=request["reasoning"])
    return None


async def fetch_contract(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """Find the places that have to do with what a request names, by what they do with it."""
    parts = request["parts"]
    contract, wanted = _CONTRACTS[parts["contract"]], _fold(parts["name"])
    sites = [site for site in await code.registrations(contract.kinds) if _is_named(site.registration.name, wanted)]
    asked = parts["actions"].split()
    refs = _make_refs(sites, contract, asked or contract.actions) or _make_refs(sites, contract, contract.actions)
    others = Counter(contract.find_action(site.registration) for site in sites)
    facts = {"name": _name_best(sites) or parts["name"], "contract": parts["contract"]}
    facts["missing"] = " ".join(action for action in asked if not others[action])
    return Retrieved(refs=refs[:_MOST_LISTED], totals=Counter(ref["kind"] for ref in refs), facts=facts)


def _make_refs(sites: Sequence[RegistrationSite], contract: _Contract, actions: Collection[str]) -> list[EvidenceRef]:
    refs = [
        make_lines_ref(
            site.location,
            "entry",
            symbol=site.registration.handler or site.registration.name,
            kind=contract.find_action(site.registration),
            signature=site.registration.detail if site.registration.kind != "access" else "",
        )
        for site in sites
        if contract.find_action(site.registration) in actions
    ]
    return sorted(refs, key=lambda ref: (contract.actions.index(ref["kind"]), is_test_or_docs(ref["path"])))


def _name_best(sites: Sequence[RegistrationSite]) -> str:
    names = Counter(site.registration.name for site in sites)
    return names.most_common(1)[0][0] if names else ""


def _is_named(name: str, wanted: str) -> bool:
    folded = _fold(name)
    return folded == wanted or ("." not in wanted and folded.rpartition(".")[2] == wanted)


def _fold(name: str) -> str:
    return name.lower()
