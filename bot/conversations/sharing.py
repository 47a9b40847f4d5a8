"""Answers that only their askers have seen, until one is shown to everybody in its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bot.conversations.turn_deps import TurnDeps
from bot.errors import ChatError, NotAllowed
from bot.messages import ButtonPress, MessageHandle
from bot.replies.reply import Reply
from bot.replies.send_budget import ReplyTransport
from bot.storage.inbox import InboxEntry

SHARED = "This answer has been shared."
GONE = "This answer is no longer available. Ask again to share it."


async def share_answer(
    entry: InboxEntry,
    press: ButtonPress,
    transport: ReplyTransport,
    deps: TurnDeps,
) -> str:
    """Show an answer to everybody in its place, once, if it may be asked about there public; say why not.

    It takes as many messages there as it needs, as any reply does; they are nobody's to change, unless it is outdated.
    """
    answers, living = deps.shareable, deps.living

    async def note(handles: Sequence[MessageHandle]) -> None:
        if living is not None:
            await living.note_shared(entry.run_id, handles)

    answer = await answers.take(entry.run_id)
    if answer is None:
        return SHARED if await answers.is_shared(entry.run_id) else GONE
    public = replace(entry.message, private=False, roles=press.roles, external=press.external)
    try:
        for repository in answer.repositories:
            deps.access.check_repository(public, repository)
        place = entry.message.place.make_public()
        reply = Reply(transport, place, nonce=f"{entry.run_id[:16]}.s", note=note)
        await reply.settle(replace(answer.content, buttons=()))
    except (ChatError, NotAllowed) as error:
        await answers.keep(entry.run_id, entry.conversation, answer)
        return str(error)
    return ""
