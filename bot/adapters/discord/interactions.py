"""Handles commands, their completion and buttons in Discord, acknowledging each immediately."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, cast

import discord

from bot.adapters.discord.api_errors import map_post_errors
from bot.adapters.discord.channels import ChannelDirectory, ChannelInfo
from bot.adapters.discord.ephemeral import InteractionToken
from bot.adapters.discord.listener import MemberDirectory
from bot.adapters.discord.parsing import (
    LONGEST_CHOICE,
    UsedCommand,
    complete_repository,
    parse_used_command,
    read_roles,
    read_typed_text,
)
from bot.adapters.discord.rendering import parse_button
from bot.adapters.discord.reply_targets import ReplyTargets
from bot.adapters.inbound import deliver_with_retry
from bot.clock import Clock
from bot.conversations.dispatcher import Conversations
from bot.errors import BotError, ChatError, PlatformUnreachable
from bot.markdown.formatting import neutralize
from bot.messages import ButtonPress, IncomingMessage

Interaction = discord.Interaction[Any]
FOLLOWS = "I will post the result here."
LOST = "I couldn't store that, so I can't answer it. Try again in a minute."
LONGEST_SHOWN = 1_950  # neutralizing a text can make it longer

log = logging.getLogger(__name__)


class InteractionHandler:
    """Acknowledges interactions within the three seconds that Discord allows; the conversations do the rest.

    `visible` names the repositories that the author of a message may ask about there, `may_reindex` those that the
    author may reindex. Only the author sees a refusal.
    """

    def __init__(
        self,
        *,
        channels: ChannelDirectory,
        reply_targets: ReplyTargets,
        members: MemberDirectory,
        conversations: Conversations,
        visible: Callable[[IncomingMessage], Sequence[str]],
        may_reindex: Callable[[IncomingMessage, str], bool],
        clock: Clock,
    ) -> None:
        self._channels = channels
        self._reply_targets = reply_targets
        self._members = members
        self._conversations = conversations
        self._visible = visible
        self._may_reindex = may_reindex
        self._clock = clock

    async def handle(self, interaction: Interaction) -> None:
        """Handle an interaction; drop one that Discord no longer accepts an answer to."""
        data = cast("dict[str, Any]", interaction.data or {})
        try:
            channel = await self._channels.find(interaction.channel_id or 0, interaction.channel)
            match interaction.type:
                case discord.InteractionType.application_command:
                    await self._run_command(interaction, channel, parse_used_command(data))
                case discord.InteractionType.autocomplete:
                    await self._complete(interaction, channel, read_typed_text(data))
                case discord.InteractionType.component:
                    await self._press(interaction, channel, str(data.get("custom_id", "")))
        except ChatError as error:
            log.warning("an interaction was not answered: %s", error)

    async def _run_command(self, interaction: Interaction, channel: ChannelInfo, command: UsedCommand | None) -> None:
        if command is None:
            return
        may = interaction.app_permissions
        may_write = may.view_channel and (may.send_messages_in_threads if channel.is_thread else may.send_messages)
        aloud = (
            command.aloud
            and not channel.is_direct
            and may_write
            and await self._is_allowed(interaction, channel, command)
        )
        if command.is_question and aloud:
            message = await self._post_question(interaction, channel, command)
        else:
            await self._acknowledge(interaction, FOLLOWS if aloud else "")
            line = "" if aloud else _make_line(interaction)
            message = await self._make_message(interaction, channel, command, line=line)
        if not await deliver_with_retry(lambda: self._conversations.receive(message), self._clock):
            await self._send_followup(interaction, LOST)

    async def _is_allowed(self, interaction: Interaction, channel: ChannelInfo, command: UsedCommand) -> bool:
        """Whether a command is permitted."""
        asking = await self._make_message(interaction, channel, command)
        visible = self._visible(asking)
        if command.is_question:
            return bool(visible)
        named = command.words.split()[1:2]
        return any(self._may_reindex(asking, name) for name in named or visible if name in visible)

    async def _post_question(
        self, interaction: Interaction, channel: ChannelInfo, command: UsedCommand
    ) -> IncomingMessage:
        """Show the question to everybody; the answer goes into a thread on it, as if it had been written."""
        question = neutralize(command.words[:LONGEST_SHOWN], ()).strip()
        with map_post_errors():
            shown = await interaction.response.send_message(
                f"{interaction.user.mention} asks: {question}"[:LONGEST_SHOWN], suppress_embeds=True
            )
        message = await self._make_message(interaction, channel, command, root=str(shown.message_id))
        if channel.threaded:
            self._reply_targets.expect(message.place, message.text)
        return message

    async def _acknowledge(self, interaction: Interaction, text: str) -> None:
        try:
            with map_post_errors():
                if text:
                    await interaction.response.send_message(text, ephemeral=True)
                else:
                    await interaction.response.defer(ephemeral=True, thinking=True)
        except PlatformUnreachable as error:
            # It may have arrived; if it has not, the answer comes in a direct message.
            log.info("an acknowledgement was not answered: %s", error)

    async def _make_message(
        self, interaction: Interaction, channel: ChannelInfo, command: UsedCommand, *, line: str = "", root: str = ""
    ) -> IncomingMessage:
        """Turn a command into a message; a question with a private answer is private."""
        external, roles = await self._read_standing(interaction, channel)
        alone = command.is_question and not root
        return IncomingMessage(
            place=channel.place("" if channel.is_direct else root, line=line),
            id=root or str(interaction.id),
            author=str(interaction.user.id),
            author_name=interaction.user.display_name,
            text=command.words,
            kind="direct" if channel.is_direct else "mention" if root else "command",
            sent_at=interaction.created_at.timestamp(),
            roles=roles,
            private=channel.is_direct or alone,
            in_thread=channel.is_thread,
            external=external,
        )

    async def _read_standing(self, interaction: Interaction, channel: ChannelInfo) -> tuple[bool, tuple[str, ...]]:
        """Return whether somebody is from outside, and their roles."""
        if not channel.is_direct:
            return not self._members.is_inside(channel.workspace), read_roles(interaction.user)
        inside, roles = await self._members.roles(interaction.user.id)
        return not inside, roles

    async def _complete(self, interaction: Interaction, channel: ChannelInfo, text: str) -> None:
        asking = await self._make_message(interaction, channel, UsedCommand(words=""))
        offered = complete_repository(self._visible(asking), text[:LONGEST_CHOICE])
        with map_post_errors():
            await interaction.response.autocomplete(
                [discord.app_commands.Choice(name=name, value=name) for name in offered]
            )

    async def _press(self, interaction: Interaction, channel: ChannelInfo, custom_id: str) -> None:
        meaning = parse_button(custom_id)
        if meaning is None or interaction.message is None:
            return
        with map_post_errors():
            await interaction.response.defer()
        action, value = meaning
        external, roles = await self._read_standing(interaction, channel)
        press = ButtonPress(
            handle=channel.handle(interaction.message.id), action=action, author=str(interaction.user.id), roles=roles,
            value=value, external=external, line=_make_line(interaction) if interaction.message.flags.ephemeral else "",
        )  # fmt: skip
        try:
            text = await self._conversations.handle_press(press)
        except BotError as error:
            text = str(error)
        if text:
            await self._send_followup(interaction, text)

    async def _send_followup(self, interaction: Interaction, text: str) -> None:
        with map_post_errors():
            await interaction.followup.send(text, ephemeral=True)


def _make_line(interaction: Interaction) -> str:
    """Return the line to a person after an interaction; it is open for a quarter of an hour."""
    return str(InteractionToken(interaction=interaction.id, user=interaction.user.id, token=interaction.token))
