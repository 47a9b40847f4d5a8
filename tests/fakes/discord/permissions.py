"""Permissions of members: the bits of their roles, and a channel's additions and removals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntFlag
from functools import reduce
from operator import or_

from tests.fakes.loopback.wire import JSON


class Permission(IntFlag):
    """The bits that matter to a bot that talks."""

    ADMINISTRATOR = 1 << 3
    MANAGE_CHANNELS = 1 << 4
    MANAGE_GUILD = 1 << 5
    ADD_REACTIONS = 1 << 6
    VIEW_CHANNEL = 1 << 10
    SEND_MESSAGES = 1 << 11
    MANAGE_MESSAGES = 1 << 13
    EMBED_LINKS = 1 << 14
    ATTACH_FILES = 1 << 15
    READ_MESSAGE_HISTORY = 1 << 16
    MENTION_EVERYONE = 1 << 17
    USE_EXTERNAL_EMOJIS = 1 << 18
    MANAGE_ROLES = 1 << 28
    MANAGE_WEBHOOKS = 1 << 29
    USE_APPLICATION_COMMANDS = 1 << 31
    MANAGE_THREADS = 1 << 34
    CREATE_PUBLIC_THREADS = 1 << 35
    CREATE_PRIVATE_THREADS = 1 << 36
    SEND_MESSAGES_IN_THREADS = 1 << 38


ALL = reduce(or_, Permission)
NONE = Permission(0)
MANAGEMENT = (
    Permission.ADMINISTRATOR
    | Permission.MANAGE_CHANNELS
    | Permission.MANAGE_GUILD
    | Permission.MANAGE_MESSAGES
    | Permission.MANAGE_ROLES
    | Permission.MANAGE_WEBHOOKS
    | Permission.MANAGE_THREADS
)
EVERYONE = ALL & ~MANAGEMENT  # a new server lets everyone ping everyone, too
# Without the right to write, these go as well.
WITH_WRITING = Permission.MENTION_EVERYONE | Permission.ATTACH_FILES | Permission.EMBED_LINKS


@dataclass(kw_only=True, slots=True)
class Overwrite:
    """What a channel allows and denies a role (`kind` 0) or a member (`kind` 1)."""

    target: str
    kind: int
    allow: Permission = NONE
    deny: Permission = NONE

    def wire(self) -> JSON:
        """The overwrite as channels carry it."""
        return {"id": self.target, "type": self.kind, "allow": str(int(self.allow)), "deny": str(int(self.deny))}


def of_roles(roles: Iterable[Permission]) -> Permission:
    """Join what roles allow; an administrator may do everything."""
    joined = reduce(or_, roles, NONE)
    return ALL if Permission.ADMINISTRATOR in joined else joined


def in_channel(
    base: Permission, overwrites: Iterable[Overwrite], everyone: str, roles: set[str], user: str
) -> Permission:
    """Apply the overwrites of a channel: everyone's first, then all roles', then the member's own."""
    if Permission.ADMINISTRATOR in base:
        return ALL
    listed = list(overwrites)
    for targets in ({everyone}, roles, {user}):
        bearing = [each for each in listed if each.target in targets]
        base &= ~reduce(or_, (each.deny for each in bearing), NONE)
        base |= reduce(or_, (each.allow for each in bearing), NONE)
    if Permission.VIEW_CHANNEL not in base:
        return NONE
    return base if Permission.SEND_MESSAGES in base else base & ~WITH_WRITING
