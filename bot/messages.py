"""Platform-neutral messages between people and citebot: frozen values."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import quote

from agent import fit_text

_ANEW = re.compile(r"\s*(?:ask\s+)?anew\s*[:,]\s*(?=\S)", re.IGNORECASE)
MessageKind = Literal["mention", "follow_up", "direct", "command", "overheard"]
ButtonAction = Literal[
    "stop", "good", "bad", "share", "approve", "abort", "choose", "verify", "ask", "again",
    "watch", "unwatch", "pin", "unpin",
]  # fmt: skip
LONGEST_QUOTED = 4_000  # characters of another message that are read; of them a few hundred are quoted
MAX_FILES, MAX_QUOTED = 8, 4  # of one message
SURFACE = "api"  # the platform of what is asked for over the API or on the page; people are of others
ONE_PERSON = "@"  # begins a `thread` that is none: what is there, one person sees


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """The place of a message. `thread` is the thread of replies, empty if there is none.

    `line` is a platform's path to the one person who may see a reply; it names no conversation. It
    allows writing to that person, so it is kept only until the reply is settled, and never logged.
    """

    platform: str
    workspace: str
    channel: str
    thread: str = ""
    line: str = field(default="", repr=False)

    def key(self) -> str:
        """Name the conversation of this place, `platform:workspace:channel:thread`."""
        return ":".join(quote(part, safe="") for part in (self.platform, self.workspace, self.channel, self.thread))

    def name_message(self, message: object) -> MessageKey:
        """Identify a message by its id here."""
        return MessageKey(platform=self.platform, workspace=self.workspace, channel=self.channel, message=str(message))

    def make_handle(self, message: object, thread: str | None = None) -> MessageHandle:
        """Return the message of citebot with an id, in the thread of this place, or in another one of its channel."""
        return MessageHandle(
            platform=self.platform, workspace=self.workspace, channel=self.channel, id=str(message),
            thread=self.thread if thread is None else thread,
        )  # fmt: skip

    def make_private(self, person: str) -> Place:
        """Return the private counterpart of a public place for one person."""
        return self if self.line else replace(self, thread=f"{ONE_PERSON}{person}")

    def make_public(self) -> Place:
        """Return the public counterpart of a private place."""
        return replace(self, thread="" if self.thread.startswith(ONE_PERSON) else self.thread, line="")


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageKey:
    """Identifies one message among all others."""

    platform: str
    workspace: str
    channel: str
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AttachedFile:
    """An attached file in the platform's form; `url` is empty if it may not be fetched."""

    name: str
    media_type: str
    size: int
    url: str


@dataclass(frozen=True, kw_only=True, slots=True)
class GoalOrder:
    """A goal run that a message requests: the kind of goal with its arguments, and the request in the person's words.

    `repository` and `commit` are those of the proposal, empty before it; `message` is the id of the proposed-to
    message, and `approver` the person who started it.
    """

    goal: str
    arguments: Mapping[str, Any]
    task: str
    repository: str = ""
    commit: str = ""
    message: str = ""
    approver: str = ""

    @property
    def is_proposed(self) -> bool:
        """Whether people were shown the run; before that, it is only requested."""
        return self.commit != ""


@dataclass(frozen=True, kw_only=True, slots=True)
class IncomingMessage:
    """One message to citebot, as plain Markdown without the mention of it.

    `kind` is its way of address: a `follow_up` mentions nobody, and an `overheard` one is not in a
    thread either. `private` means that only the author reads the reply (a DM, an ephemeral answer),
    `in_thread` that the thread existed before the message. `external` means that people of other
    organisations read the channel, or that the author is one; `mentions_others` that somebody else
    is addressed. `roles` are the author's groups on the platform; `sent_at` is in seconds since the
    epoch. `about` are the repositories that the author chose when asked. `oversize` is the length
    of a message that is too long to be read: none of its text is kept. `files` are attached;
    `quoted` are the texts of messages that it forwards or replies to. `edited_at` is the platform's
    time of the edit, which orders edits; 0 if there was none. `order` is the goal run that is
    requested or decided, which the reply is about. A message asked `anew` gets no earlier answer.
    """

    place: Place
    id: str
    author: str
    text: str
    kind: MessageKind
    sent_at: float
    author_name: str = ""
    roles: tuple[str, ...] = ()
    private: bool = False
    in_thread: bool = False
    external: bool = False
    mentions_others: bool = False
    about: tuple[str, ...] = ()
    oversize: int = 0
    files: tuple[AttachedFile, ...] = ()
    quoted: tuple[str, ...] = ()
    edited_at: float = 0.0
    order: GoalOrder | None = None
    anew: bool = False

    @property
    def goal_decision(self) -> GoalOrder | None:
        """A person's decision about a goal run."""
        return self.order if self.order is not None and self.order.is_proposed else None

    @property
    def identity(self) -> tuple[str, str]:
        """The author's platform, and their id there: a surface has people from many, as `slack:U123`."""
        if self.place.platform != SURFACE:
            return self.place.platform, self.author
        platform, _, person = self.author.partition(":")
        return platform, person

    @property
    def key(self) -> MessageKey:
        """The key that identifies this message."""
        return self.place.name_message(self.id)


def fit_message(message: IncomingMessage) -> IncomingMessage:
    """Return a message with its text, or without it if that is too long; "anew:" does not count as text."""
    text = fit_text(message.text)
    if text is None:
        return replace(message, text="", oversize=len(message.text))
    if (anew := _ANEW.match(text)) is not None:
        return replace(message, text=text[anew.end() :], anew=True)
    return message if text == message.text else replace(message, text=text)


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageHandle:
    """A message that citebot has sent; enough for any process to change it.

    `thread` may end, after a blank, in the `line` to one person.
    """

    platform: str
    workspace: str
    channel: str
    id: str
    thread: str = field(default="", repr=False)

    @property
    def line(self) -> str:
        """The path to the one person who sees it."""
        return self.thread.partition(" ")[2]

    def drop_line(self) -> MessageHandle:
        """Return the message without its path to the person: it can be named, but not changed."""
        return replace(self, thread=self.thread.partition(" ")[0])


@dataclass(frozen=True, kw_only=True, slots=True)
class Button:
    """A button under a message; a press returns its `value`."""

    action: ButtonAction
    label: str
    value: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Attachment:
    """A file that is sent with a message: a text, or a picture if `base64` is not empty.

    `language` is that of the code block that shows its beginning if it cannot be attached; empty for none. `alt`
    describes a picture for people who cannot see it, in at most 1,000 characters.
    """

    name: str
    text: str
    language: str = ""
    base64: str = ""
    alt: str = ""

    @property
    def content(self) -> bytes:
        """The content of the file."""
        return b64decode(self.base64) if self.base64 else self.text.encode("utf-8", "replace")


@dataclass(frozen=True, kw_only=True, slots=True)
class PlaceLink:
    """Named lines of a file, without a backtick, and their address; empty if there is none."""

    name: str
    url: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageContent:
    """The text of a message in Markdown, with a line on progress or freshness below it, and buttons.

    `status` and `footer` are single lines; all text is already safe to send as Markdown. `found`
    are the first places found, until there is text.
    """

    text: str = ""
    status: str = ""
    found: tuple[PlaceLink, ...] = ()
    footer: str = ""
    buttons: tuple[Button, ...] = ()
    file: Attachment | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ThreadMessage:
    """One message of a thread with a mention; `own` says that citebot wrote it."""

    id: str
    author: str
    text: str
    own: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ButtonPress:
    """A pressed button, or a reaction with the same meaning.

    `line` reaches the person from now on, if only they see the reply. People react for many
    reasons, so a meaningless reaction `is_reaction` and is ignored.
    """

    handle: MessageHandle
    action: ButtonAction
    author: str
    roles: tuple[str, ...] = ()
    value: str = ""
    external: bool = False
    line: str = field(default="", repr=False)
    is_reaction: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class RateLimit:
    """The rate limit of a method: a number of calls in a number of seconds, per workspace, channel or thread."""

    calls: int
    seconds: float = 60.0
    per: Literal["workspace", "channel", "thread"] = "workspace"


SendMethod = Literal["post", "edit", "withdraw", "stream_start", "stream_append", "stream_stop"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Capabilities:
    """The abilities of a platform. `max_units` limits a message's text, status and footer together, counted in UTF-16
    units where `utf16` is set, and with `&`, `<` and `>` escaped where `escapes` is. `edit_every` is the least number
    of seconds between two changes of one message. With `whispers`, one person in a channel can be written to.
    """

    max_units: int
    utf16: bool
    rates: Mapping[SendMethod, RateLimit]
    max_parts: int = 6
    edits: bool = True
    streams: bool = False
    escapes: bool = False
    whispers: bool = False
    edit_every: float = 1.2
