"""A message as the fake keeps it, and as a person sees it."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field

from tests.fakes.discord.checks import EPHEMERAL, LOADING, SUPPRESS_EMBEDS
from tests.fakes.discord.components import buttons_of, text_of
from tests.fakes.discord.guilds import User
from tests.fakes.discord.mentions import Mentioned
from tests.fakes.loopback.wire import JSON

DEFAULT, THREAD_CREATED, REPLY, COMMAND, THREAD_STARTER = 0, 18, 19, 20, 21
_LINK = re.compile(r"(?<!<)https?://[^\s<>]+")


@dataclass(kw_only=True, slots=True)
class Message:
    """One message. `rang` is what rang when it was sent, `mentioned` what shows as a mention now."""

    id: str
    channel_id: str
    author: User
    sent_at: float
    content: str = ""
    kind: int = DEFAULT
    flags: int = 0
    embeds: list[JSON] = field(default_factory=list)
    components: list[JSON] = field(default_factory=list)
    attachments: list[JSON] = field(default_factory=list)
    reply_to: str | None = None
    forwarded: Message | None = None
    mentioned: Mentioned = field(default_factory=Mentioned)
    rang: tuple[str, ...] = ()
    nonce: str | None = None
    enforced: bool = False
    reactions: dict[str, list[str]] = field(default_factory=dict)
    thread_id: str | None = None
    webhook_id: str | None = None
    application_id: str | None = None
    interaction: JSON | None = None
    for_user: str | None = None  # an ephemeral message: only this person sees it
    edited_at: float | None = None
    edits: int = 0
    versions: list[str] = field(default_factory=list)

    @property
    def shown(self) -> str:
        """What a person reads."""
        return "\n".join(part for part in (self.content, text_of(self.components)) if part)

    def note_version(self) -> None:
        """Remember what a person sees now."""
        if not self.versions or self.versions[-1] != self.shown:
            self.versions.append(self.shown)

    def seen(self) -> Seen:
        """The message as a person sees it."""
        return Seen(
            id=self.id,
            channel=self.channel_id,
            author=self.author.id,
            text=self.shown,
            edits=self.edits,
            versions=tuple(self.versions),
            kind=self.kind,
            is_bot=self.author.is_bot,
            reply_to=self.reply_to,
            thread=self.thread_id,
            embeds=copy.deepcopy(self.embeds),
            components=copy.deepcopy(self.components),
            buttons=buttons_of(self.components),
            reactions={emoji: tuple(users) for emoji, users in self.reactions.items() if users},
            files=tuple(each["filename"] for each in self.attachments),
            flags=self.flags,
            ephemeral=bool(self.flags & EPHEMERAL),
            thinking=bool(self.flags & LOADING),
            previews=not self.flags & SUPPRESS_EMBEDS and _LINK.search(self.shown) is not None,
            pings=self.rang,
            mentions=self.mentioned.pings,
            nonce=self.nonce,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """A message as a person sees it.

    `text` is the content, or what text components say; `versions` are all texts that it ever showed, the present one
    last; `edits` counts the author's edits. `buttons` maps labels to custom ids or addresses. `previews` tells whether
    Discord would fetch its links, `pings` what rang when it was sent, `mentions` what shows as a mention now.
    `thinking` is a deferred answer that has not come yet.
    """

    id: str
    channel: str
    author: str
    text: str
    edits: int
    versions: tuple[str, ...]
    kind: int
    is_bot: bool
    reply_to: str | None
    thread: str | None
    embeds: list[JSON]
    components: list[JSON]
    buttons: dict[str, str]
    reactions: dict[str, tuple[str, ...]]
    files: tuple[str, ...]
    flags: int
    ephemeral: bool
    thinking: bool
    previews: bool
    pings: tuple[str, ...]
    mentions: tuple[str, ...]
    nonce: str | None
