"""Gateway intents: those that an app asked for, and those that are switched on in the developer portal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tests.fakes.discord.payloads import without_text
from tests.fakes.discord.world import Event
from tests.fakes.loopback.wire import JSON

Privileged = Literal["members", "presences", "message_content"]
GUILDS, MEMBERS, PRESENCES = 1 << 0, 1 << 1, 1 << 8
GUILD_MESSAGES, GUILD_REACTIONS, GUILD_TYPING = 1 << 9, 1 << 10, 1 << 11
DIRECT_MESSAGES, DIRECT_REACTIONS, DIRECT_TYPING = 1 << 12, 1 << 13, 1 << 14
MESSAGE_CONTENT = 1 << 15
KNOWN = (1 << 17) - 1 | 1 << 20 | 1 << 21 | 1 << 24 | 1 << 25
PRIVILEGED: dict[Privileged, int] = {"members": MEMBERS, "presences": PRESENCES, "message_content": MESSAGE_CONTENT}
# The flags of an application that is in few servers and has the intent switched on.
PORTAL_FLAGS: dict[Privileged, int] = {"presences": 1 << 13, "members": 1 << 15, "message_content": 1 << 19}
# The beginning of an event's name: what is needed for it in a server, and in a direct conversation.
NEEDED = {
    "MESSAGE_REACTION": (GUILD_REACTIONS, DIRECT_REACTIONS),
    "MESSAGE": (GUILD_MESSAGES, DIRECT_MESSAGES),
    "TYPING": (GUILD_TYPING, DIRECT_TYPING),
    "GUILD_MEMBER": (MEMBERS, MEMBERS),
    "GUILD": (GUILDS, GUILDS),
    "CHANNEL": (GUILDS, GUILDS),
    "THREAD": (GUILDS, GUILDS),
}


@dataclass
class Portal:
    """What the owner has switched on for the app."""

    privileged: set[Privileged] = field(default_factory=lambda: {"message_content"})
    public: bool = False  # anybody may invite the bot

    @property
    def flags(self) -> int:
        """The flags of the application."""
        return sum(PORTAL_FLAGS[each] for each in self.privileged)

    def forbids(self, intents: int) -> bool:
        """Whether the app asks for more than it was given."""
        return any(intents & bit and name not in self.privileged for name, bit in PRIVILEGED.items())


def delivered(event: Event, intents: int) -> JSON | None:
    """Return what an app with these intents gets of an event; None if it gets nothing."""
    needed = next((bits for start, bits in NEEDED.items() if event.name.startswith(start)), (0, 0))
    bit = needed[0 if event.guild_id else 1]
    if bit and not intents & bit and not event.about_bot:
        return None
    return event.data if event.open_text or intents & MESSAGE_CONTENT else without_text(event.data)
