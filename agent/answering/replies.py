"""Replies of a model that may be stored: as they are, signatures and all, unless no store would take them."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from typing import cast

from agent import chat
from agent.ports import EvidenceTexts
from agent.prompts.answer_prompts import remove_tag_words
from agent.text.storable import is_storable, make_storable

LONGEST_ANSWER = 20_000
LONGEST_CALLS = 20_000

log = logging.getLogger(__name__)


def limit_reply(reply: chat.AIMessage, *, longest_calls: int = LONGEST_CALLS) -> chat.AIMessage:
    """Keep a reply, unless it is far too long to be meant or no store would take it: then its text is left."""
    calls = [*reply.tool_calls, *reply.invalid_tool_calls]
    text = str(reply.text)
    if (
        len(text) <= LONGEST_ANSWER
        and is_storable(text)
        and all(is_storable(call) for call in calls)
        and len(json.dumps(calls, default=str)) <= longest_calls
    ):
        return reply
    log.warning("a reply of the model could not be kept and has been cut to its text")
    return chat.AIMessage(make_storable(text[:LONGEST_ANSWER]))


class KeptReply:
    """The reply to some messages, kept beside the checkpoints as soon as it is there.

    What a node asks several models at once is saved when all have replied: a crash before that would cost all of it.
    """

    def __init__(self, texts: EvidenceTexts, messages: Sequence[chat.BaseMessage]) -> None:
        told = json.dumps([message.model_dump(exclude={"id"}) for message in messages], sort_keys=True, default=str)
        self._key = f"reply {hashlib.blake2b(remove_tag_words(told).encode(), digest_size=12).hexdigest()}"
        self._texts = texts

    async def find(self) -> chat.AIMessage | None:
        """Return the reply; None before there is one."""
        text = (await self._texts.texts([self._key])).get(self._key)
        return cast("chat.AIMessage", chat.messages_from_dict([json.loads(text)])[0]) if text is not None else None

    async def keep(self, reply: chat.AIMessage) -> None:
        """Keep the reply, unless its provider has put something into it that is no JSON."""
        try:
            text = json.dumps(chat.message_to_dict(reply))
        except (TypeError, ValueError) as error:
            log.info("a reply is not kept before its step is saved: %s", error)
        else:
            await self._texts.keep(self._key, text)
