"""The reply to a claimed message: resumed from an earlier try, taken back, or shown to everybody."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from bot.conversations.turn_deps import TurnDeps
from bot.errors import BotError, ChatError, MessageLost, NotAllowed
from bot.messages import ButtonPress, MessageContent, MessageHandle
from bot.ports import ChatPlatform
from bot.replies.reply import Reply
from bot.replies.send_budget import ReplyTransport
from bot.storage.inbox import Inbox, InboxEntry
from bot.storage.message_states import HELD, OVER

log = logging.getLogger(__name__)
SHARED = "This answer has been shared."
GONE = "This answer is no longer available. Ask again to share it."


def open_reply(
    entry: InboxEntry,
    transport: ReplyTransport,
    inbox: Inbox,
    *,
    on_stop: Callable[[], object] = lambda: None,
    on_shown: Callable[[MessageContent], None] = lambda _: None,
    may_grow: Callable[[], bool] = lambda: True,
) -> Reply:
    """Open the reply to a message, or that of an earlier try; the inbox notes its messages."""

    async def is_taken(handle: MessageHandle) -> bool:
        other = await inbox.find_by_reply(handle)
        return other is not None and other.id != entry.id

    return Reply(
        transport,
        entry.message.place,
        nonce=entry.run_id,
        note=partial(_note_handles, entry, transport, inbox),
        handles=entry.handles,
        recovered=entry.token > (entry.state in HELD),  # an earlier claim was not brought to its end
        on_stop=on_stop,
        on_shown=on_shown,
        is_taken=is_taken,
        may_grow=may_grow,
    )


async def _note_handles(
    entry: InboxEntry, transport: ReplyTransport, inbox: Inbox, handles: Sequence[MessageHandle]
) -> None:
    """Note the messages of a reply; raises `MessageLost` if another process owns it.

    A process that was suspended while posting, and woke up after another one had started the reply again, deletes
    messages unknown to the other one. Until the other has noted any, it may still be about to find them.
    """
    if await inbox.note_handles(entry, handles):
        return
    now = await inbox.get(entry.id)
    known = now.handles if now is not None else ()
    for handle in handles if known else ():
        if handle not in known:
            await _take_back(transport.platform, handle)
    raise MessageLost("Another process answers this message, or it was edited meanwhile.")


async def withdraw_if_deleted(entry: InboxEntry, reply: Reply, inbox: Inbox) -> None:
    """Delete messages posted after somebody else deleted the rest of the reply with its question."""
    try:
        found = await inbox.find(entry.message.key)
        if found is not None and found.state == "withdrawn":
            await reply.withdraw()
    except BotError as error:
        log.warning("an answer was not withdrawn: %s", error)


async def take_back_strays(entry: InboxEntry, reply: Reply, inbox: Inbox, platform: ChatPlatform) -> bool:
    """Delete messages posted here that are not part of the final reply; False until there is one."""
    now, posted = await inbox.get(entry.id), reply.platform_messages
    if posted is None or (now is not None and now.state not in OVER):
        return False
    known = {handle.drop_line() for handle in (now.handles if now is not None else posted)}
    for handle in posted:
        if handle.drop_line() not in known:
            await _take_back(platform, handle)
    return True


async def _take_back(platform: ChatPlatform, handle: MessageHandle) -> None:
    """Delete a message that was posted too late."""
    try:
        await platform.withdraw(handle)
    except ChatError as error:
        log.warning("a message that was posted too late was not taken back: %s", error)


async def share_answer(
    entry: InboxEntry,
    press: ButtonPress,
    transport: ReplyTransport,
    deps: TurnDeps,
) -> str:
    """Show an answer to everybody in its place, once, if it may be asked about there public; say why not.

    It uses as many messages as it needs, like any reply; nobody changes them, unless it is
    outdated.
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
