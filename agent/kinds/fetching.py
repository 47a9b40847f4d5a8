"""Carries out retrieval requests: each lookup has a function that fetches what it asks for."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from agent.evidence.lookups import LOOKUPS, search
from agent.evidence.refs import make_lines_ref
from agent.evidence.requests import Fetch, Retrieved
from agent.history.changes import fetch_changes
from agent.history.people import fetch_people
from agent.kinds.command_search import fetch_commands
from agent.kinds.error_origin import find_error_origin
from agent.kinds.outlines import fetch_folder
from agent.kinds.registrations import fetch_registered, fetch_subclasses
from agent.ports import CodeSearch
from agent.state import Lookup, RetrievalRequest
from indexer.errors import IndexerError

log = logging.getLogger(__name__)


async def _fetch_overview(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """Fetch what the README says the repository is; what a search finds, where it says nothing."""
    told = [
        make_lines_ref(one.location, "lines", language=one.language) for one in (await code.overview()).introduction
    ]
    return Retrieved(refs=told) if told else await search(code, request)


# Kinds of question with an answer of their own; of a kind that is missing here, a search is made.
_KINDS: Mapping[Lookup, Fetch] = {
    "changes": fetch_changes,
    "people": fetch_people,
    "commands": fetch_commands,
    "options": fetch_registered,
    "entry_points": fetch_registered,
    "lists": fetch_subclasses,
    "outline": fetch_folder,
    "overview": _fetch_overview,
}
# What is looked up, and never searched for instead.
_LOOKUPS: Mapping[Lookup, Fetch] = {**LOOKUPS, "error": find_error_origin}


async def fetch_evidence(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """Carry out one retrieval request; a question of some kind that has nothing to it here is searched for."""
    fetch = _LOOKUPS.get(request["lookup"]) or _KINDS.get(request["lookup"])
    found = await fetch(code, request) if fetch is not None else Retrieved(refs=())
    if found.refs or request["lookup"] in _LOOKUPS:
        return found
    return await search(code, request)


async def try_fetch(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """Carry out one request that must not end the others: of one that fails, return why."""
    try:
        return await fetch_evidence(code, request)
    except IndexerError as error:
        log.warning("the %s request failed: %s", request["lookup"], error)
        return Retrieved(refs=(), failures=(str(error),))
