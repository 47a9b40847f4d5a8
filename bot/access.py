"""Who may ask about what, and where: read from citebot.toml, and refusing whatever it does not allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Self

from bot.errors import Refused, SettingsError
from bot.messages import IncomingMessage, Place

ANYBODY = "*"
DIRECT = "direct"  # stands for DMs among the channels


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """People who may ask about repositories in channels. Names of repositories may hold `*`; `role:` names a group."""

    repositories: tuple[str, ...]
    channels: tuple[str, ...] = (ANYBODY,)
    people: tuple[str, ...] = (ANYBODY,)


@dataclass(frozen=True, kw_only=True, slots=True)
class AccessPolicy:
    """The tables `[access]` and `[[access.rules]]` of citebot.toml.

    A repository that a rule names is for those whom one of its rules admits, in the channels that the rule admits; all
    others are for everyone inside, or with `open` unset for nobody. Channels and people are the platform's ids, bare or
    as `slack:C123`. Channels with people from outside are refused unless they are listed.
    """

    open: bool = True
    reindex: tuple[str, ...] = ()
    external_channels: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> Self:
        """Read the table `access`; `SettingsError` lists everything that is wrong with it."""
        problems: list[str] = []
        policy = cls(
            open=_flag(table, "open", problems),
            reindex=_names(table, "reindex", (), problems),
            external_channels=_names(table, "external_channels", (), problems),
            rules=tuple(_rule(number, entry, problems) for number, entry in enumerate(_entries(table, problems), 1)),
        )
        problems += _strangers(table, ("open", "reindex", "external_channels", "rules"), "access")
        if problems:
            raise SettingsError("\n  ".join(["citebot.toml:", *problems]))
        return policy

    def check_place(self, message: IncomingMessage) -> None:
        """Raise `Refused` where nothing may be answered at all, whatever it is about."""
        if not message.author:
            raise Refused("I cannot tell who asks, so I cannot answer.")
        if message.external and not _listed(self.external_channels, message.place.platform, (message.place.channel,)):
            raise Refused(
                "People from outside your organisation read this channel, so I do not answer here. Ask me in a DM, or "
                "have the channel added to `external_channels` in citebot.toml."
            )

    def check_repository(self, message: IncomingMessage, repository: str) -> None:
        """Raise `Refused` unless the author may ask about a repository in this place."""
        self.check_place(message)
        if not self._admits(message, repository):
            raise Refused(f"`{repository[:80]}` may not be asked about by you in this place. `repos` lists what may.")

    def visible(self, message: IncomingMessage, repositories: Sequence[str]) -> tuple[str, ...]:
        """Return the repositories that the author may ask about in this place; none where nothing may be answered."""
        return tuple(name for name in repositories if self.is_open(message) and self._admits(message, name))

    def is_open(self, message: IncomingMessage) -> bool:
        """Whether anything at all may be answered to the author in this place."""
        try:
            self.check_place(message)
        except Refused:
            return False
        return True

    def check_reindex(self, message: IncomingMessage, repository: str) -> None:
        """Raise `Refused` unless the author may have a repository indexed."""
        self.check_repository(message, repository)
        if not _listed(self.reindex, message.place.platform, people_of(message)):
            raise Refused("You may not do that. Have your id added to `reindex` in the table [access] of citebot.toml.")

    def _admits(self, message: IncomingMessage, repository: str) -> bool:
        rules = [rule for rule in self.rules if any(fnmatchcase(repository, name) for name in rule.repositories)]
        if not rules:
            return self.open
        platform, channels = message.place.platform, channels_of(message)
        return any(
            _listed(rule.channels, platform, channels) and _listed(rule.people, platform, people_of(message))
            for rule in rules
        )


def channels_of(message: IncomingMessage) -> tuple[str, ...]:
    """The names by which rules may mean the place of a message."""
    place: Place = message.place
    return (place.channel, DIRECT) if message.private else (place.channel,)


def is_listed(channels: Sequence[str], message: IncomingMessage) -> bool:
    """Whether a list of channels, named as rules do it, has the one that a message was written in."""
    names = (message.place.channel, DIRECT) if message.kind == "direct" else (message.place.channel,)
    return _listed(channels, message.place.platform, names)


def people_of(message: IncomingMessage) -> tuple[str, ...]:
    """The names by which rules may mean the author of a message."""
    return (message.author, *(f"role:{role}" for role in message.roles))


def _listed(allowed: Sequence[str], platform: str, names: Sequence[str]) -> bool:
    return ANYBODY in allowed or any(name in allowed or f"{platform}:{name}" in allowed for name in names if name)


def _flag(table: Mapping[str, Any], key: str, problems: list[str]) -> bool:
    value = table.get(key, True)
    if not isinstance(value, bool):
        problems.append(f"access: {key} is true or false.")
    return value is True


def _names(table: Mapping[str, Any], key: str, default: tuple[str, ...], problems: list[str]) -> tuple[str, ...]:
    value = table.get(key, list(default))
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        problems.append(f'access: {key} is a list of names, such as ["U123"].')
        return ()
    return tuple(value)


def _entries(table: Mapping[str, Any], problems: list[str]) -> Sequence[Mapping[str, Any]]:
    entries = table.get("rules", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        problems.append("access: rules are tables, written [[access.rules]].")
        return ()
    return entries


def _rule(number: int, entry: Mapping[str, Any], problems: list[str]) -> Rule:
    problems += _strangers(entry, ("repositories", "channels", "people"), f"rule {number} of access")
    repositories = _names(entry, "repositories", (), problems)
    if not repositories:
        problems.append(f"access: rule {number} names no repositories.")
    return Rule(
        repositories=repositories,
        channels=_names(entry, "channels", (ANYBODY,), problems),
        people=_names(entry, "people", (ANYBODY,), problems),
    )


def _strangers(table: Mapping[str, Any], known: Sequence[str], name: str) -> list[str]:
    return [f"{name}: {key} is not a key; it has {', '.join(known)}." for key in table if key not in known]
