"""Answers that only their askers have seen, until one is shown to everybody in its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cachetools import LRUCache

from bot.access import AccessPolicy
from bot.conversations.turn import ActiveTurn
from bot.errors import ChatError, NotAllowed
from bot.messages import ButtonPress, MessageContent, MessageHandle
from bot.replies.reply import Reply
from bot.replies.send_budget import ReplyTransport
from bot.storage.inbox import InboxEntry

MAX_SHAREABLE = 200
SHARED = "This answer has been shared."
GONE = "I do not have this answer any more. Ask again to share it."


@dataclass(frozen=True, kw_only=True)
class _Shareable:
    """An answer, and the repositories that it is about."""

    content: MessageContent
    repositories: tuple[str, ...]


class ShareableAnswers:
    """Keeps the last answers that can be shared, by their runs."""

    def __init__(self, access: AccessPolicy) -> None:
        self._access = access
        self._answers: LRUCache[str, _Shareable] = LRUCache(MAX_SHAREABLE)
        self._shared: LRUCache[str, None] = LRUCache(MAX_SHAREABLE)

    def keep(self, turn: ActiveTurn) -> None:
        """Keep the answer of a turn that has ended, where it shows a button for sharing it."""
        if turn.final is not None and any(button.action == "share" for button in turn.final.buttons):
            self._answers[turn.entry.run_id] = _Shareable(content=turn.final, repositories=turn.repositories)

    async def share(self, entry: InboxEntry, press: ButtonPress, transport: ReplyTransport) -> str:
        """Show an answer to everybody in its place, once, if it may be asked about there public; say why not.

        It takes as many messages there as it needs, as any reply does.
        """
        answer = self._answers.pop(entry.run_id, None)
        if answer is None:
            return SHARED if entry.run_id in self._shared else GONE
        self._shared[entry.run_id] = None
        public = replace(entry.message, private=False, roles=press.roles, external=press.external)
        place = entry.message.place
        try:
            for repository in answer.repositories:
                self._access.check_repository(public, repository)
            shared = replace(place, thread=place.thread if place.line else "", line="")
            reply = Reply(transport, shared, nonce=f"{entry.run_id[:16]}.s", note=_forget_handles)
            await reply.settle(replace(answer.content, buttons=()))
        except (ChatError, NotAllowed) as error:
            self._answers[entry.run_id] = answer
            del self._shared[entry.run_id]
            return str(error)
        return ""


async def _forget_handles(_: Sequence[MessageHandle]) -> None:
    """Note nothing: what was shared is nobody's to change any more."""
