"""People and the servers that they are members of."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fakes.discord.ids import iso
from tests.fakes.discord.permissions import Permission, of_roles
from tests.fakes.loopback.wire import JSON


@dataclass(kw_only=True, slots=True)
class User:
    """Someone with an account."""

    id: str
    name: str
    is_bot: bool = False
    takes_dms: bool = True

    def wire(self) -> JSON:
        """The user as events and answers carry it."""
        body: JSON = {"id": self.id, "username": self.name, "discriminator": "0", "avatar": None}
        body |= {"global_name": None if self.is_bot else self.name.title(), "public_flags": 0}
        return body | ({"bot": True, "discriminator": "0001"} if self.is_bot else {})


@dataclass(kw_only=True, slots=True)
class Role:
    """A role of a server; the one that everyone has bears the server's id."""

    id: str
    name: str
    permissions: Permission
    position: int = 0
    mentionable: bool = False
    bot_id: str | None = None

    def wire(self) -> JSON:
        """The role as servers carry it."""
        body: JSON = {"id": self.id, "name": self.name, "permissions": str(int(self.permissions)), "flags": 0}
        body |= {"color": 0, "colors": {"primary_color": 0}, "hoist": False, "position": self.position}
        body |= {"managed": self.bot_id is not None, "mentionable": self.mentionable}
        return body | ({"tags": {"bot_id": self.bot_id}} if self.bot_id else {})


@dataclass(kw_only=True, slots=True)
class Member:
    """A user in a server; `roles` are those beside everyone's."""

    user: User
    joined: float
    roles: list[str] = field(default_factory=list)

    def partial(self) -> JSON:
        """The member as it is beside a user."""
        body: JSON = {"roles": list(self.roles), "nick": None, "avatar": None, "joined_at": iso(self.joined)}
        return body | {"deaf": False, "mute": False, "pending": False, "flags": 0}

    def wire(self) -> JSON:
        """The member with its user."""
        return self.partial() | {"user": self.user.wire()}


@dataclass(kw_only=True, slots=True)
class Guild:
    """A server."""

    id: str
    name: str
    owner_id: str
    created: float
    roles: dict[str, Role] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    installed: bool = True  # the bot has been invited

    def permissions(self, user: str) -> Permission:
        """What a member may do where no channel says otherwise."""
        if user == self.owner_id:
            return of_roles([Permission.ADMINISTRATOR])
        mine = [self.id, *self.members[user].roles]
        return of_roles(self.roles[role].permissions for role in mine)

    def wire(self) -> JSON:
        """The server as GET gives it."""
        body: JSON = {"id": self.id, "name": self.name, "owner_id": self.owner_id, "icon": None, "splash": None}
        body |= {"roles": [role.wire() for role in self.roles.values()], "emojis": [], "stickers": [], "features": []}
        body |= {"preferred_locale": "en-US", "verification_level": 0, "default_message_notifications": 0}
        body |= {"afk_timeout": 300, "afk_channel_id": None, "system_channel_id": None, "rules_channel_id": None}
        body |= {"premium_tier": 0, "nsfw_level": 0, "mfa_level": 0, "explicit_content_filter": 0, "description": None}
        return body | {"system_channel_flags": 0, "public_updates_channel_id": None, "vanity_url_code": None}
