"""Interactions: a command, a button; to be acknowledged within three seconds, good for a quarter of an hour."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fakes.discord.channels import Channel
from tests.fakes.discord.errors import DiscordError
from tests.fakes.discord.guilds import User
from tests.fakes.discord.messages import Message, Seen
from tests.fakes.loopback.clock import Clock
from tests.fakes.loopback.wire import JSON

COMMAND, COMPONENT, AUTOCOMPLETE = 2, 3, 4
ACK_WITHIN, TOKEN_LIFETIME = 3.0, 900.0


@dataclass(kw_only=True, slots=True, eq=False)
class Interaction:
    """What a person did, and what the app made of it.

    `callback` is the type of its first answer, `choices` what an autocompletion offers.
    """

    id: str
    token: str
    kind: int
    user: User
    channel: Channel
    created: float
    clock: Clock
    name: str
    source: Message | None = None
    callback: int | None = None
    answered_at: float | None = None
    message: Message | None = None
    followups: list[Message] = field(default_factory=list)
    choices: list[JSON] = field(default_factory=list)

    @property
    def acknowledged(self) -> bool:
        """Whether the app has answered in time."""
        return self.callback is not None

    @property
    def failed(self) -> bool:
        """Whether the person reads that the application did not respond."""
        return not self.acknowledged and self.clock.now() - self.created > ACK_WITHIN

    @property
    def expired(self) -> bool:
        """Whether its token is good for nothing more."""
        return self.clock.now() - self.created > TOKEN_LIFETIME

    @property
    def response(self) -> Seen | None:
        """The first answer as the person sees it."""
        return self.message.seen() if self.message else None

    @property
    def responses(self) -> list[Seen]:
        """All answers as the person sees them."""
        return [each.seen() for each in (self.message, *self.followups) if each]

    def metadata(self) -> JSON:
        """What answers carry of it."""
        details: JSON = {"id": self.id, "type": self.kind, "user": self.user.wire()}
        old = details | {"name": self.name}
        return {"interaction_metadata": details | {"authorizing_integration_owners": {}}, "interaction": old}


class Interactions:
    """All interactions, by id and by token."""

    def __init__(self, clock: Clock) -> None:
        self.all: list[Interaction] = []
        self._clock = clock

    def open(self, interaction: Interaction) -> None:
        """Remember one."""
        self.all.append(interaction)

    def to_acknowledge(self, identity: str, token: str) -> Interaction:
        """The interaction, if it can still be acknowledged."""
        found = next((each for each in self.all if (each.id, each.token) == (identity, token)), None)
        if found is None or found.failed:
            raise DiscordError(10062)
        if found.acknowledged:
            raise DiscordError(40060)
        return found

    def by_token(self, token: str) -> Interaction:
        """The interaction whose token is good for answers."""
        found = next((each for each in self.all if each.token == token), None)
        if found is None or not found.acknowledged:
            raise DiscordError(10015)
        if found.expired:
            raise DiscordError(50027)
        return found
