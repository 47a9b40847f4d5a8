"""Messages and servers as Discord sends them."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from tests.fakes.discord.guilds import Guild
from tests.fakes.discord.ids import iso
from tests.fakes.discord.messages import REPLY, THREAD_STARTER, Message
from tests.fakes.loopback.wire import JSON

if TYPE_CHECKING:
    from tests.fakes.discord.world import World

HIDDEN: JSON = {"content": "", "embeds": [], "attachments": [], "components": []}


def message_wire(world: World, message: Message) -> JSON:
    """The message as an answer carries it; what is missing is left out, never null."""
    body: JSON = {"id": message.id, "channel_id": message.channel_id, "type": message.kind, "tts": False}
    body |= {"author": message.author.wire(), "content": message.content, "flags": message.flags, "pinned": False}
    body |= {"timestamp": iso(message.sent_at), "attachments": message.attachments, "embeds": message.embeds}
    body |= {"edited_timestamp": None if message.edited_at is None else iso(message.edited_at)}
    body |= {"components": message.components, "mentions": _people(world, message)}
    body |= {"mention_roles": list(message.mentioned.roles), "mention_everyone": bool(message.mentioned.everyone)}
    extras: dict[str, Any] = {
        "nonce": message.nonce,
        "webhook_id": message.webhook_id,
        "message_snapshots": [_snapshot(message.forwarded)] if message.forwarded else None,
        "application_id": message.application_id,
        "reactions": _reactions(world, message),
        **(message.interaction or {}),
    }
    body |= {name: value for name, value in extras.items() if value}
    if message.thread_id is not None:
        body["thread"] = world.channels[message.thread_id].wire(bot=world.bot.id)
    return copy.deepcopy(body | _reference(world, message))


def event_message(world: World, message: Message) -> JSON:
    """The message as an event carries it: of a server with its id and the author's membership."""
    body = message_wire(world, message)
    guild_id = world.channels[message.channel_id].guild_id
    if guild_id is None:
        return body
    members = world.guilds[guild_id].members
    for user in body["mentions"]:
        if user["id"] in members:
            user["member"] = members[user["id"]].partial()
    author = members.get(message.author.id)
    return body | {"guild_id": guild_id} | ({"member": author.partial()} if author else {})


def without_text(data: JSON) -> JSON:
    """The message as an app gets it that may not read it."""
    body = data | copy.deepcopy(HIDDEN)
    referenced = body.get("referenced_message")
    return body | ({"referenced_message": referenced | copy.deepcopy(HIDDEN)} if referenced else {})


def guild_create(world: World, guild: Guild) -> JSON:
    """A server as it becomes available: with its channels and active threads, and the bot alone as member."""
    mine = [each for each in world.channels.values() if each.guild_id == guild.id and not each.is_thread]
    bot = world.bot.id
    body = guild.wire() | {"joined_at": iso(guild.created), "large": False, "unavailable": False}
    body |= {"member_count": len(guild.members), "members": [guild.members[bot].wire()], "presences": []}
    body |= {"channels": [each.wire(bot=bot) for each in mine], "voice_states": [], "stage_instances": []}
    body |= {"threads": [each.wire(bot=bot) for each in world.threads_of(guild.id)]}
    return body | {"guild_scheduled_events": [], "soundboard_sounds": []}


def reaction_event(world: World, message: Message, emoji: str, user: str, *, added: bool) -> JSON:
    """Somebody reacted, or took it back."""
    body: JSON = {"user_id": user, "channel_id": message.channel_id, "message_id": message.id}
    body |= {"emoji": {"id": None, "name": emoji}, "burst": False, "type": 0}
    guild_id = world.channels[message.channel_id].guild_id
    body |= {"guild_id": guild_id} if guild_id else {}
    if added:
        body["message_author_id"] = message.author.id
        if guild_id and (member := world.guilds[guild_id].members.get(user)):
            body["member"] = member.wire()
    return body


def _people(world: World, message: Message) -> list[JSON]:
    return [world.users[user].wire() for user in message.mentioned.users if user in world.users]  # no integrations


def _reactions(world: World, message: Message) -> list[JSON]:
    bot = world.bot.id
    return [
        {"emoji": {"id": None, "name": emoji}, "count": len(users), "me": bot in users, "me_burst": False}
        | {"count_details": {"normal": len(users), "burst": 0}, "burst_colors": []}
        for emoji, users in message.reactions.items()
        if users
    ]


def _reference(world: World, message: Message) -> JSON:
    if message.reply_to is None or message.kind not in {REPLY, THREAD_STARTER}:
        return {}
    channel = world.channels[message.channel_id]
    place = channel.parent_id if message.kind == THREAD_STARTER and channel.parent_id else channel.id
    reference: JSON = {"type": 0, "message_id": message.reply_to, "channel_id": place}
    reference |= {"guild_id": channel.guild_id} if channel.guild_id else {}
    original = next((each for each in world.all(place) if each.id == message.reply_to), None)
    if original is None:
        return {"message_reference": reference, "referenced_message": None}
    wire = message_wire(world, original)
    for nested in ("message_reference", "referenced_message"):
        wire.pop(nested, None)
    return {"message_reference": reference, "referenced_message": wire}


def _snapshot(message: Message) -> JSON:
    """A forwarded message: nobody is named in it."""
    body: JSON = {"type": message.kind, "content": message.content, "flags": message.flags, "embeds": []}
    body |= {"timestamp": iso(message.sent_at), "edited_timestamp": None, "attachments": message.attachments}
    return {"message": body | {"mentions": [], "mention_roles": [], "components": []}}
