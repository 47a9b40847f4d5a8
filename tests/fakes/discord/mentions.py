"""Whom a message rings: what is in its text, as far as the sender lets it and may."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.fakes.discord.errors import invalid
from tests.fakes.loopback.wire import JSON

_CODE = re.compile(r"(`{3,}).*?\1|(`{1,2})(?!`).+?(?<!`)\2(?!`)", re.DOTALL)
_MENTION = re.compile(r"<@!?(?P<user>\d+)>|<@&(?P<role>\d+)>|(?P<all>@everyone|@here)")
KINDS = {"users", "roles", "everyone"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Mentioned:
    """The mentions that ring."""

    users: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    everyone: tuple[str, ...] = ()

    @property
    def pings(self) -> tuple[str, ...]:
        """All of them as written."""
        users, roles = (f"<@{each}>" for each in self.users), (f"<@&{each}>" for each in self.roles)
        return (*self.everyone, *roles, *users)


@dataclass(frozen=True, kw_only=True, slots=True)
class Allowed:
    """What an `allowed_mentions` lets through; what a kind lists by ids rings for these only."""

    kinds: frozenset[str]
    users: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    replied_user: bool = True

    def user(self, user: str) -> bool:
        """Whether a person may be rung."""
        return "users" in self.kinds or user in self.users

    def role(self, role: str) -> bool:
        """Whether a role may be rung."""
        return "roles" in self.kinds or role in self.roles


def allowed_of(body: JSON, *, default: frozenset[str] = frozenset(KINDS)) -> Allowed:
    """Read the `allowed_mentions` of a body; without one `default` rings, and the author of what is replied to."""
    given = body.get("allowed_mentions")
    if given is None:
        return Allowed(kinds=default)
    kinds = set(given.get("parse") or ())
    for kind in ("users", "roles"):
        if kind in kinds and given.get(kind):
            message = f'parse:["{kind}"] and {kind}: [ids...] are mutually exclusive.'
            raise invalid("allowed_mentions", "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE", message)
    if unknown := kinds - KINDS:
        raise invalid("allowed_mentions.parse", "BASE_TYPE_CHOICES", f"Value {sorted(unknown)} is not one of {KINDS}.")
    return Allowed(
        kinds=frozenset(kinds),
        users=_ids(given.get("users")),
        roles=_ids(given.get("roles")),
        replied_user=bool(given.get("replied_user", False)),
    )


def mentioned(
    text: str, allowed: Allowed, *, may_all: bool, known: Callable[[str], bool], ringable: Callable[[str], bool]
) -> Mentioned:
    """Find the mentions that ring, in order; nothing in code does. `ringable` tells whether a role can be rung."""
    users: list[str] = []
    roles: list[str] = []
    everyone: list[str] = []
    for match in _MENTION.finditer(_CODE.sub(" ", text)):
        if (user := match["user"]) and allowed.user(user) and known(user):
            users.append(user)
        elif (role := match["role"]) and allowed.role(role) and ringable(role):
            roles.append(role)
        elif match["all"] and may_all and "everyone" in allowed.kinds:
            everyone.append(match["all"])
    return Mentioned(users=_once(users), roles=_once(roles), everyone=_once(everyone))


def _ids(given: Any) -> frozenset[str]:
    return frozenset(str(each) for each in given or ())


def _once(found: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))
