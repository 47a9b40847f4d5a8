"""Replies of a model that the state may hold: as they are, signatures and all, unless no store would take them."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from agent.text.storable import is_storable, make_storable

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

LONGEST_ANSWER = 20_000
LONGEST_CALLS = 20_000

log = logging.getLogger(__name__)


def limit_reply(reply: AIMessage) -> AIMessage:
    """Keep a reply, unless it is far too long to be meant or no store would take it: then its text is left."""
    from langchain_core.messages import AIMessage  # takes long, and without a model nobody replies

    calls = [*reply.tool_calls, *reply.invalid_tool_calls]
    text = str(reply.text)
    if (
        len(text) <= LONGEST_ANSWER
        and is_storable(text)
        and all(is_storable(call) for call in calls)
        and len(json.dumps(calls, default=str)) <= LONGEST_CALLS
    ):
        return reply
    log.warning("a reply of the model could not be kept and has been cut to its text")
    return AIMessage(make_storable(text[:LONGEST_ANSWER]))
