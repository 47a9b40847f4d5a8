"""Access rules of citebot.toml: who may ask about a repository in a channel, and each channel's reply mode."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from bot.errors import NotAllowed, OutsidersPresent

if TYPE_CHECKING:
    from bot.messages import IncomingMessage, Place

ANYBODY = "*"
DIRECT = "direct"  # stands for DMs among the channels

# It answers mentions alone; follow-ups in its threads as well; or each new question of the channel, where it finds
# something.
Manners = Literal["mentions", "follow", "every question"]

Names = tuple[Annotated[str, Field(min_length=1)], ...]


class AccessRule(BaseModel):
    """People who may ask about repositories in channels. Repository names may contain `*`; `role:` names a group."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    repositories: Annotated[Names, Field(min_length=1)]
    channels: Names = (ANYBODY,)
    people: Names = (ANYBODY,)


class ChannelTable(BaseModel):
    """One table `[channels.ID]`: the reply mode of the channel with that id, bare or as `slack:C123`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    manners: Manners = "follow"


class AccessPolicy(BaseModel):
    """The tables `[access]` and `[[access.rules]]` of citebot.toml.

    A repository named by a rule is for the people of one of its rules, in that rule's channels; all
    others are for everyone inside or, with `open` unset, for nobody. Channels and people are the
    platform's ids, bare or as `slack:C123`. Channels with people from outside are refused unless
    they are listed. People in `run` may have commands run in the sandbox. Admins see how
    everybody's answers were found. `questions` are the accounts of this machine, as `terminal:ada`,
    that may read questions.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    open: StrictBool = True
    reindex: Names = ()
    admins: Names = ()
    questions: Names = ()
    run: Names = ()
    external_channels: Names = ()
    rules: tuple[AccessRule, ...] = ()

    def check_place(self, message: IncomingMessage) -> None:
        """Raise `NotAllowed` if citebot may answer nothing there."""
        if not message.author:
            raise NotAllowed("I can't tell who is asking, so I can't answer.")
        if message.external and not _is_on_list(
            self.external_channels, message.place.platform, (message.place.channel,)
        ):
            raise OutsidersPresent(
                "I only answer people in this organization."
                if message.private
                else "People outside your organization can read this channel, so I can't answer here. Ask me in a DM."
            )

    def check_repository(self, message: IncomingMessage, repository: str) -> None:
        """Raise `NotAllowed` unless the author may ask about a repository in this place."""
        self.check_place(message)
        if not self._is_allowed(message, repository):
            raise NotAllowed(
                f"You don't have access to `{repository[:80]}` here. `repos` lists what you can ask about."
            )

    def list_visible(self, message: IncomingMessage, repositories: Sequence[str]) -> tuple[str, ...]:
        """Return the repositories that the author may ask about there; none if citebot may answer nothing."""
        return tuple(name for name in repositories if self.is_open(message) and self._is_allowed(message, name))

    def is_open(self, message: IncomingMessage) -> bool:
        """Whether the author may get any answer in this place."""
        return _passes(self.check_place, message)

    def check_reindex(self, message: IncomingMessage, repository: str) -> None:
        """Raise `NotAllowed` unless the author may reindex."""
        self.check_repository(message, repository)
        if not _is_on_list(self.reindex, *_name_author(message)):
            raise NotAllowed(
                "You aren't allowed to do that. Have your id added to `reindex` in the table [access] of citebot.toml."
            )

    def may_reindex(self, message: IncomingMessage, repository: str) -> bool:
        """Whether the author may reindex."""
        return _passes(self.check_reindex, message, repository)

    def is_admin(self, message: IncomingMessage) -> bool:
        """Whether the author may see everybody's questions."""
        return _is_on_list(self.admins, *_name_author(message))

    def check_questions(self, account: str) -> None:
        """Raise `NotAllowed` unless an account of this machine may read questions."""
        if not _is_on_list(self.questions, "terminal", (account,)):
            raise NotAllowed(
                f'You aren\'t allowed to read the questions. Add "terminal:{account}" to `questions` in the table '
                "[access] of citebot.toml."
            )

    def may_run(self, message: IncomingMessage, repository: str) -> bool:
        """Whether the author may start goal runs in a repository."""
        return _passes(self.check_run, message, repository)

    def may_see(self, message: IncomingMessage, repositories: Iterable[str]) -> bool:
        """Whether the author may ask about all of some repositories in this place."""
        return all(_passes(self.check_repository, message, name) for name in repositories)

    def check_run(self, message: IncomingMessage, repository: str) -> None:
        """Raise `NotAllowed` unless the author may start goal runs in a repository."""
        self.check_repository(message, repository)
        if not _is_on_list(self.run, *_name_author(message)):
            raise NotAllowed(
                "You aren't allowed to start goal runs. Ask somebody who may, or have your id added to `run` in the "
                "table [access] of citebot.toml."
            )

    def _is_allowed(self, message: IncomingMessage, repository: str) -> bool:
        rules = [rule for rule in self.rules if any(fnmatchcase(repository, name) for name in rule.repositories)]
        if not rules:
            return self.open
        (platform, author), channels = _name_author(message), list_channel_names(message)
        return any(
            _is_on_list(rule.channels, platform, channels) and _is_on_list(rule.people, platform, author)
            for rule in rules
        )


def _passes(check: Callable[..., None], *given: object) -> bool:
    try:
        check(*given)
    except NotAllowed:
        return False
    return True


def find_manners(channels: Mapping[str, Manners], place: Place) -> Manners:
    """Return the reply mode of a place; direct messages are always answered."""
    return channels.get(f"{place.platform}:{place.channel}") or channels.get(place.channel) or "follow"


def list_channel_names(message: IncomingMessage) -> tuple[str, ...]:
    """Return the names by which rules may refer to the place of a message."""
    place: Place = message.place
    return (place.channel, DIRECT) if message.private else (place.channel,)


def is_listed(channels: Sequence[str], message: IncomingMessage) -> bool:
    """Whether a list of channels, in the form of the rules, contains the channel of a message."""
    names = (message.place.channel, DIRECT) if message.kind == "direct" else (message.place.channel,)
    return _is_on_list(channels, message.place.platform, names)


def _name_author(message: IncomingMessage) -> tuple[str, tuple[str, ...]]:
    """Return the author's platform, and the names by which rules may refer to the author there."""
    platform, person = message.identity
    return platform, (person, *(f"role:{role}" for role in message.roles))


def _is_on_list(allowed: Sequence[str], platform: str, names: Sequence[str]) -> bool:
    return ANYBODY in allowed or any(name in allowed or f"{platform}:{name}" in allowed for name in names if name)
