"""Reads what people write in the workspace: mentions, threads, commands. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace

from bot.adapters.local.platform import FILE_ADDRESS, make_handle
from bot.adapters.local.workspace import BOT, DIRECT, PLATFORM, WORKSPACE, Person, StoredMessage
from bot.messages import AttachedFile, ButtonAction, ButtonPress, IncomingMessage, MessageKey, MessageKind, Place

COMMANDS = ("/citebot", "/reindex")
REACTIONS: Mapping[str, ButtonAction] = {"✅": "approve", "❌": "stop", "👀": "watch"}  # their meanings
EVERYBODY = ("everyone", "channel", "here")
_MENTION = re.compile(r"(?<![\w@])@(?P<name>\w{1,32})", re.ASCII)


def parse_message(message: StoredMessage, author: Person, people: Collection[str]) -> IncomingMessage:
    """Read a message as citebot takes it in, without the mentions of citebot."""
    named = {found["name"].lower() for found in _MENTION.finditer(message.text)}
    is_direct = message.channel.startswith(DIRECT)
    return IncomingMessage(
        place=make_place(message),
        id=str(message.id),
        author=author.id,
        author_name=author.name,
        text=_MENTION.sub(_drop_own_name, message.text).strip(),
        kind=_classify(message, named, is_direct=is_direct),
        sent_at=message.at,
        private=is_direct,
        in_thread=message.thread > 0,
        external=author.is_guest,
        mentions_others=bool((named - {BOT, author.id}) & {*people, *EVERYBODY}),
        files=tuple(
            AttachedFile(name=file.name, media_type=file.media_type, size=file.size, url=f"{FILE_ADDRESS}{file.id}")
            for file in message.files
        ),
        edited_at=message.edited_at,
    )


def parse_command(message: StoredMessage, author: Person) -> IncomingMessage | None:
    """Parse a slash command, whose answer only its author sees; None for one that does not exist."""
    name, _, rest = message.text.partition(" ")
    if name not in COMMANDS:
        return None
    asked = parse_message(replace(message, text=rest), author, ())
    words = f"reindex {asked.text}".strip() if name == "/reindex" else asked.text
    return replace(asked, text=words, kind="command", private=True, place=asked.place.make_private(author.id))


def make_place(message: StoredMessage) -> Place:
    """Return the place of the answer: the message's thread, or a new one; in a DM, the DM itself."""
    thread = "" if message.channel.startswith(DIRECT) else str(message.thread or message.id)
    return Place(platform=PLATFORM, workspace=WORKSPACE, channel=message.channel, thread=thread)


def make_key(message: StoredMessage) -> MessageKey:
    """Tell a message from all others."""
    return MessageKey(platform=PLATFORM, workspace=WORKSPACE, channel=message.channel, message=str(message.id))


def make_press(message: StoredMessage, person: Person, action: ButtonAction, value: str = "") -> ButtonPress:
    """Make the press of a button under a message of citebot."""
    place = Place(platform=PLATFORM, workspace=WORKSPACE, channel=message.channel, thread=str(message.thread or ""))
    return ButtonPress(
        handle=make_handle(place, message.id), action=action, author=person.id, value=value, external=person.is_guest
    )


def _classify(message: StoredMessage, named: Collection[str], *, is_direct: bool) -> MessageKind:
    """Tell how a message addresses citebot."""
    if is_direct:
        return "direct"
    return "mention" if BOT in named else "follow_up" if message.thread else "overheard"


def _drop_own_name(found: re.Match[str]) -> str:
    return "" if found["name"].lower() == BOT else found[0]
