"""Chooses the requests for a question about several repositories: each is searched for its own names."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from agent.evidence.intent_router import request_history
from agent.evidence.rule_router import route_by_rules
from agent.ports import CodeSearch
from agent.repositories.joined_code import JoinedCode
from agent.state import Lookup, RetrievalRequest, RouterDecision

_OF_PAST: frozenset[Lookup] = frozenset({"changes", "people"})
_SEARCHED: frozenset[Lookup] = frozenset({"prose"})  # answered by a search


async def route_question(question: str, code: CodeSearch) -> RouterDecision:
    """Choose the requests by rules.

    READMEs, commands and commits belong to one repository, so a question about them is put to each. Names, files and
    texts are looked up in all at once, so that a miss in one does not hide a hit in another.
    """
    if not isinstance(code, JoinedCode):
        return await route_by_rules(question, code)
    decisions = await asyncio.gather(*(route_by_rules(question, member) for member in code.members.values()))
    if any(request["lookup"] == "contracts" for one in decisions for request in one["requests"]):
        return await route_by_rules(question, code)  # one end may be here, and the other there
    own = [(name, one) for name, one in zip(code.members, decisions, strict=True) if _is_of_one_repository(one)]
    if not own:
        return await route_by_rules(question, code)
    _, first = own[0]
    requests: list[RetrievalRequest] = [
        {**request, "repository": name} for name, one in own for request in one["requests"]
    ]
    return {**first, "requests": requests, "unknown": [], "fast_path": all(one["fast_path"] for _, one in own)}


async def request_past(question: str, requests: Sequence[RetrievalRequest], code: CodeSearch) -> list[RetrievalRequest]:
    """Ask git about the past of each repository, if a question may be about it."""
    if any(request["lookup"] in _OF_PAST for request in requests):
        return []
    if not isinstance(code, JoinedCode):
        return await request_history(question, code)
    asked = [(name, await request_history(question, member)) for name, member in code.members.items()]
    return [{**request, "repository": name} for name, own in asked for request in own]


def _is_of_one_repository(decision: RouterDecision) -> bool:
    kinds = {request["lookup"] for request in decision["requests"] if "parts" in request}
    return bool(kinds - _SEARCHED)
