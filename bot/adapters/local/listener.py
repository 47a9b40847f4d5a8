"""Parses people's actions in the workspace, and delivers them to the conversations."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from bot.adapters.inbound import deliver_with_retry
from bot.adapters.local.workspace import (
    BOT,
    DIRECT,
    FILE_ADDRESS,
    PLATFORM,
    WORKSPACE,
    Person,
    StoredMessage,
    Workspace,
)
from bot.clock import Clock
from bot.conversations.dispatcher import Conversations
from bot.messages import (
    MAX_FILES,
    AttachedFile,
    ButtonAction,
    ButtonPress,
    IncomingMessage,
    MessageKind,
    Place,
)

NOT_KEPT = "citebot couldn't store that. Try again."
NOT_YOURS = "Only the person who wrote a message can change it."
GONE = "That message is gone."
COMMANDS = ("/citebot", "/reindex")
NO_COMMAND = f"There is no such command. Try {' or '.join(COMMANDS)}."
REACTIONS: Mapping[str, ButtonAction] = {"✅": "approve", "❌": "stop", "👀": "watch"}  # their meanings
EVERYBODY = ("everyone", "channel", "here")
_MENTION = re.compile(r"(?<![\w@])@(?P<name>\w{1,32})", re.ASCII)


class LocalListener:
    """The actions of people here; each method returns the reply for that person, which may be empty.

    `mask` removes secrets from stored text.
    """

    def __init__(
        self, workspace: Workspace, conversations: Conversations, clock: Clock, mask: Callable[[str], str]
    ) -> None:
        self._workspace = workspace
        self._conversations = conversations
        self._clock = clock
        self._mask = mask

    async def write(
        self,
        person: Person,
        channel: str,
        text: str,
        *,
        thread: int = 0,
        files: Sequence[tuple[str, str, bytes]] = (),
    ) -> str:
        """Take in a message; a command and its answer are private."""
        is_command = text.startswith("/") and not thread and not files
        message = await self._workspace.add(
            channel, person.id, thread=thread, text=self._mask(text), files=files[:MAX_FILES],
            reader=person.id if is_command else "",
        )  # fmt: skip
        # Stored text is masked; the conversations see the original, and mask it before they store it.
        typed = replace(message, text=text)
        asked = parse_command(typed, person) if is_command else parse_message(typed, person, self._workspace.people)
        if asked is None:
            return NO_COMMAND
        is_kept = await deliver_with_retry(lambda: self._conversations.receive(asked), self._clock)
        return "" if is_kept else NOT_KEPT

    async def edit(self, person: Person, message: StoredMessage, text: str) -> str:
        """Edit one's own message; citebot answers it again."""
        if message.author != person.id or message.reader:
            return NOT_YOURS
        await self._workspace.rewrite(message.id, self._mask(text))
        changed = await self._workspace.find(message.id)
        if changed is None:
            return GONE
        asked = parse_message(replace(changed, text=text), person, self._workspace.people)
        is_kept = await deliver_with_retry(lambda: self._conversations.handle_edit(asked), self._clock)
        return "" if is_kept else NOT_KEPT

    async def delete(self, person: Person, message: StoredMessage) -> str:
        """Delete one's own message; its answer is withdrawn."""
        if message.author != person.id:
            return NOT_YOURS
        await self._workspace.delete(message.id)
        key = make_place(message).name_message(message.id)
        is_kept = await deliver_with_retry(lambda: self._conversations.handle_deletion(key), self._clock)
        return "" if is_kept else NOT_KEPT

    async def press(self, person: Person, message: StoredMessage, number: int) -> str:
        """Press a button of a citebot message, by number."""
        buttons = message.content.buttons if message.content is not None else ()
        if not 0 <= number < len(buttons):
            return GONE
        pressed = buttons[number]
        return await self._conversations.handle_press(make_press(message, person, pressed.action, pressed.value))

    async def react(self, person: Person, message: StoredMessage, sign: str) -> str:
        """Add a reaction to a message, or remove it; some act like a button."""
        action = REACTIONS.get(sign)
        if action is None:
            return ""
        is_there = await self._workspace.react(message, person.id, sign)
        if message.author != BOT or not (is_there or action == "watch"):
            return ""
        action = action if is_there else "unwatch"
        press = replace(make_press(message, person, action), is_reaction=True)
        return await self._conversations.handle_press(press)


def parse_message(message: StoredMessage, author: Person, people: Collection[str]) -> IncomingMessage:
    """Parse a message for citebot, without its mentions."""
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


def make_press(message: StoredMessage, person: Person, action: ButtonAction, value: str = "") -> ButtonPress:
    """Make the press of a button under a message of citebot."""
    place = Place(platform=PLATFORM, workspace=WORKSPACE, channel=message.channel, thread=str(message.thread or ""))
    return ButtonPress(
        handle=place.make_handle(message.id), action=action, author=person.id, value=value, external=person.is_guest
    )


def _classify(message: StoredMessage, named: Collection[str], *, is_direct: bool) -> MessageKind:
    """Tell how a message addresses citebot."""
    if is_direct:
        return "direct"
    return "mention" if BOT in named else "follow_up" if message.thread else "overheard"


def _drop_own_name(found: re.Match[str]) -> str:
    return "" if found["name"].lower() == BOT else found[0]
