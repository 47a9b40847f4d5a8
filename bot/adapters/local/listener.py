"""Brings what people do in the workspace to the conversations: messages, edits, deletions, presses and reactions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from bot.adapters.inbound import deliver_with_retry
from bot.adapters.local.parsing import COMMANDS, REACTIONS, make_key, make_press, parse_command, parse_message
from bot.adapters.local.workspace import BOT, Person, StoredMessage, Workspace
from bot.clock import Clock
from bot.conversations.dispatcher import Conversations
from bot.messages import MOST_FILES

NOT_KEPT = "citebot couldn't store that. Try again."
NO_COMMAND = f"There is no such command. Try {' or '.join(COMMANDS)}."
NOT_YOURS = "Only the person who wrote a message can change it."
GONE = "That message is gone."


class LocalListener:
    """The actions of people here; each method returns the reply for that person alone, which may be empty.

    `mask` takes secrets out of what is kept.
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
        """Take a message in; a command and its answer are seen by the person alone."""
        is_command = text.startswith("/") and not thread and not files
        message = await self._workspace.add(
            channel, person.id, thread=thread, text=self._mask(text), files=files[:MOST_FILES],
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
        """Change a message of one's own, which is answered again."""
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
        """Delete a message of one's own, whose answer is withdrawn."""
        if message.author != person.id:
            return NOT_YOURS
        await self._workspace.delete(message.id)
        key = make_key(message)
        is_kept = await deliver_with_retry(lambda: self._conversations.handle_deletion(key), self._clock)
        return "" if is_kept else NOT_KEPT

    async def press(self, person: Person, message: StoredMessage, number: int) -> str:
        """Press a button under a message of citebot, by its number."""
        buttons = message.content.buttons if message.content is not None else ()
        if not 0 <= number < len(buttons):
            return GONE
        pressed = buttons[number]
        return await self._conversations.handle_press(make_press(message, person, pressed.action, pressed.value))

    async def react(self, person: Person, message: StoredMessage, sign: str) -> str:
        """Add a reaction to a message, or take it back; some mean what a button means."""
        action = REACTIONS.get(sign)
        if action is None:
            return ""
        is_there = await self._workspace.react(message, person.id, sign)
        if message.author != BOT or not (is_there or action == "watch"):
            return ""
        action = action if is_there else "unwatch"
        press = replace(make_press(message, person, action), is_reaction=True)
        return await self._conversations.handle_press(press)
