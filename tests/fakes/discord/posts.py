"""Creates and changes the bot's messages, in channels and as answers to interactions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.fakes.discord.channels import Channel
from tests.fakes.discord.checks import checked, refuse_empty
from tests.fakes.discord.errors import DiscordError, invalid
from tests.fakes.discord.mentions import KINDS, Allowed, Mentioned, allowed_of, mentioned
from tests.fakes.discord.messages import REPLY, Message
from tests.fakes.discord.permissions import Permission
from tests.fakes.discord.requests import Upload
from tests.fakes.discord.world import World
from tests.fakes.loopback.wire import JSON

ANYONE = frozenset(KINDS)
OLD = 3600.0


class Posts:
    """Composes and revises messages."""

    def __init__(self, world: World) -> None:
        self.base_url = ""
        self._world = world
        self._old_edits: dict[str, list[float]] = {}

    def compose(
        self,
        channel: Channel,
        body: JSON,
        files: Iterable[Upload] = (),
        *,
        identity: str = "",
        rings: frozenset[str] = ANYONE,
        **fields: Any,
    ) -> Message:
        """Build a message of the bot, or refuse it; `rings` is what a body without `allowed_mentions` rings."""
        world = self._world
        allowed = allowed_of(body, default=rings)
        found = checked(body, world.rules)
        attachments = self._attach(channel.id, body, files)
        reply_to = self._replied(channel, body)
        refuse_empty(found.get("content", ""), found.get("embeds"), found.get("components"), attachments)
        message = Message(
            id=identity or world.ids.next(),
            channel_id=channel.id,
            author=world.bot,
            sent_at=world.clock.now(),
            attachments=attachments,
            reply_to=reply_to,
            nonce=None if body.get("nonce") is None else str(body["nonce"]),
            enforced=bool(body.get("enforce_nonce")),
            **({"kind": REPLY} if reply_to else {}) | found | fields,
        )
        self.ring(message, allowed, world.permissions(world.bot.id, channel))
        return message

    def ring(self, message: Message, allowed: Allowed, may: Permission) -> None:
        """Work out whom a new message rings."""
        message.mentioned = self._mentioned(message, allowed, may)
        message.rang = message.mentioned.pings
        if message.reply_to and message.kind == REPLY and allowed.replied_user:
            try:
                author = self._world.message(message.channel_id, message.reply_to).author
            except DiscordError:
                return
            users = tuple(dict.fromkeys((*message.mentioned.users, author.id)))
            message.mentioned = Mentioned(
                users=users, roles=message.mentioned.roles, everyone=message.mentioned.everyone
            )
            message.rang = message.mentioned.pings

    def revise(
        self, message: Message, body: JSON, files: Iterable[Upload] = (), *, rings: frozenset[str] = ANYONE
    ) -> None:
        """Change a message, or refuse to; its mentions are found again, but nobody is rung again."""
        world = self._world
        found = checked(body, world.rules, flags=message.flags)
        new_files = list(files)
        if "attachments" in body or new_files:
            found["attachments"] = self._kept(message, body) + self._attach(message.channel_id, body, new_files)
        parts = ("content", "embeds", "components", "attachments")
        refuse_empty(*(found.get(name, getattr(message, name)) for name in parts))
        allowed = allowed_of(body, default=rings)
        for name, value in found.items():
            setattr(message, name, value)
        if "content" in found:
            channel = world.channels[message.channel_id]
            message.mentioned = self._mentioned(message, allowed, world.permissions(world.bot.id, channel))
        message.edits += 1
        message.edited_at = world.clock.now()

    def count_old_edit(self, message: Message) -> None:
        """Refuse too many edits of old messages."""
        now = self._world.clock.now()
        if now - message.sent_at <= OLD:
            return
        lately = [at for at in self._old_edits.get(message.channel_id, []) if at > now - OLD]
        if len(lately) >= self._world.rules.old_edits:
            retry = self._world.rules.old_edit_retry
            raise DiscordError(30046, retry_after=retry, **{"global": False})
        self._old_edits[message.channel_id] = [*lately, now]

    def _mentioned(self, message: Message, allowed: Allowed, may: Permission) -> Mentioned:
        channel = self._world.channels[message.channel_id]
        guild = self._world.guilds[channel.guild_id] if channel.guild_id else None
        all_ring = guild is not None and Permission.MENTION_EVERYONE in may

        def ringable(role: str) -> bool:
            return guild is not None and role in guild.roles and (all_ring or guild.roles[role].mentionable)

        return mentioned(
            message.shown, allowed, may_all=all_ring, known=self._world.users.__contains__, ringable=ringable
        )

    def _replied(self, channel: Channel, body: JSON) -> str | None:
        reference = body.get("message_reference")
        if not reference or reference.get("type", 0) != 0:
            return None
        world, identity = self._world, str(reference["message_id"])
        if Permission.READ_MESSAGE_HISTORY not in world.permissions(world.bot.id, channel):
            raise DiscordError(160002)
        try:
            return world.message(channel.id, identity).id
        except DiscordError as error:
            if reference.get("fail_if_not_exists", True):
                raise invalid("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message") from error
            return None

    def _kept(self, message: Message, body: JSON) -> list[JSON]:
        if "attachments" not in body:
            return list(message.attachments)
        wanted = {str(each.get("id")) for each in body["attachments"]}
        return [each for each in message.attachments if each["id"] in wanted]

    def _attach(self, channel: str, body: JSON, files: Iterable[Upload]) -> list[JSON]:
        described = {str(each.get("id")): each for each in body.get("attachments") or []}
        return [self.store(channel, each, described.get(each.key, {}).get("description")) for each in files]

    def store(self, channel: str, upload: Upload, description: str | None = None) -> JSON:
        """Keep a file and return the attachment that shows it."""
        identity = self._world.ids.next()
        self._world.uploads[identity] = upload.content
        url = f"{self.base_url}/attachments/{channel}/{identity}/{upload.filename}"
        body: JSON = {"id": identity, "filename": upload.filename, "size": len(upload.content), "url": url}
        body |= {"proxy_url": url, "content_type": upload.content_type}
        return body | ({"description": description} if description else {})
