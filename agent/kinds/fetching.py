"""Carries out retrieval requests: each lookup has a function that fetches what it asks for."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from agent.evidence.lookups import LOOKUPS, search
from agent.evidence.retrieved import Fetch, Retrieved
from agent.history.changes import fetch_changes
from agent.history.people import fetch_people
from agent.history.reasons import fetch_reasons
from agent.kinds.command_search import fetch_commands
from agent.kinds.error_origin import find_error_origin
from agent.kinds.examples import fetch_example
from agent.kinds.explanations import fetch_explanation
from agent.kinds.listing.entry_lookup import fetch_entry_points
from agent.kinds.listing.group_lookup import fetch_list, name_group
from agent.kinds.listing.option_lookup import fetch_options
from agent.kinds.outlines import fetch_folder
from agent.kinds.overviews import fetch_overview
from agent.ports import CodeSearch
from agent.state import Lookup, RetrievalRequest
from indexer.errors import IndexerError

log = logging.getLogger(__name__)

# What the kinds of question of `agent/questions/kinds` want; of a kind that is missing here, a search is made.
_KINDS: Mapping[Lookup, Fetch] = {
    "changes": fetch_changes,
    "people": fetch_people,
    "reasons": fetch_reasons,
    "commands": fetch_commands,
    "options": fetch_options,
    "entry_points": fetch_entry_points,
    "lists": fetch_list,
    "outline": fetch_folder,
    "overview": fetch_overview,
    "prose": fetch_explanation,
    "example": fetch_example,
}
# What is looked up, and never searched for instead.
_LOOKUPS: Mapping[Lookup, Fetch] = {**LOOKUPS, "error": find_error_origin}

# What is not registered anywhere may still be listed by the code.
_LISTED = frozenset({"options", "entry_points"})


async def fetch_evidence(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """Carry out one retrieval request; a question of some kind that has nothing to it here is searched for."""
    fetch = _LOOKUPS.get(request["lookup"]) or _KINDS.get(request["lookup"])
    found = await fetch(code, request) if fetch is not None else Retrieved(refs=())
    if not found.refs and request["lookup"] in _LISTED:
        found = await fetch_list(code, {**request, "parts": name_group(request.get("parts", {}))})
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
