"""Reads what people write: questions and follow-ups. Pure functions over discord.py's messages."""

from __future__ import annotations

import discord

from agent.guard.size import fit
from bot.adapters.discord.rooms import ChannelInfo
from bot.adapters.discord.text import to_plain_markdown
from bot.messages import IncomingMessage, MessageKind

_FROM_PEOPLE = frozenset({discord.MessageType.default, discord.MessageType.reply})
OwnUser = discord.ClientUser | None


def parse_question(message: discord.Message, room: ChannelInfo, own: OwnUser) -> IncomingMessage | None:
    """Read a message of a person; None where it is said to nobody, by a bot, or without words that may be read."""
    kind = _kind(message, room, own)
    if kind is None or not _by_person(message):
        return None
    fitting = fit(message.content)
    text = read_text(message, own, fitting or "")
    if kind == "follow_up" and not (text or fitting is None):
        return None
    begins = room.is_thread and message.id == room.id
    return IncomingMessage(
        place=room.place("" if room.is_direct else message.id),
        id=str(message.id),
        author=str(message.author.id),
        author_name=message.author.display_name,
        text=f"{room.title}\n\n{text}" if begins and room.title else text,
        kind=kind,
        sent_at=message.created_at.timestamp(),
        roles=read_roles(message.author),
        private=room.is_direct,
        in_thread=room.is_thread and not begins,
        mentions_others=_has_other_mentions(message, own),
        oversize=len(message.content) if fitting is None else 0,
    )


def read_text(message: discord.Message, own: OwnUser, text: str) -> str:
    """What is read of the text of a message, as it was typed, without mentions of the bot."""
    users = {each.id: each.display_name for each in message.mentions}
    users |= {each.id: each.name for each in message.role_mentions}
    places = {each.id: getattr(each, "name", "") for each in message.channel_mentions}
    return to_plain_markdown(text, own=_list_own_ids(message, own), users=users, places=places)


def read_roles(person: discord.abc.User) -> tuple[str, ...]:
    """The roles of a member, but for the one that everyone has."""
    roles = person.roles if isinstance(person, discord.Member) else ()
    return tuple(str(role.id) for role in roles if not role.is_default())


def _list_own_ids(message: discord.Message, own: OwnUser) -> frozenset[int]:
    """The ids by which the bot is mentioned: its own, and that of its role, which people choose by mistake."""
    role = message.guild.self_role if message.guild else None
    return frozenset(each.id for each in (own, role) if each is not None)


def _kind(message: discord.Message, room: ChannelInfo, own: OwnUser) -> MessageKind | None:
    """How a message addresses the bot; None for what is said to nobody. `@everyone` addresses nobody."""
    if room.is_direct:
        return "direct"
    mentioned = {each.id for each in message.mentions} | {each.id for each in message.role_mentions}
    if mentioned & _list_own_ids(message, own):
        return "mention"
    return "follow_up" if room.is_thread else None


def _has_other_mentions(message: discord.Message, own: OwnUser) -> bool:
    """Whether somebody else is addressed: by name, by a role, with all others, or by a reply."""
    mentioned = {each.id for each in message.mentions} | {each.id for each in message.role_mentions}
    replied = message.reference.resolved if message.reference else None
    answered = {own.id if own else 0, message.author.id}
    to_other = isinstance(replied, discord.Message) and replied.author.id not in answered
    return bool(mentioned - _list_own_ids(message, own)) or message.mention_everyone or to_other


def _by_person(message: discord.Message) -> bool:
    return message.type in _FROM_PEOPLE and not message.author.bot and message.webhook_id is None
