"""The state of a workspace: people, channels, messages and what hangs on them; every change becomes an event."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.fakes.loopback.changes import Changes
from tests.fakes.loopback.clock import Clock
from tests.fakes.loopback.wire import JSON
from tests.fakes.slack.errors import SlackError
from tests.fakes.slack.messages import Message

ChannelKind = Literal["channel", "group", "im", "mpim"]
STATUS_LIFETIME = 120.0  # seconds until Slack clears a status on its own
TEAM, OTHER_TEAM = "T0HOME", "T0OUTSIDE"
BOT_USER, BOT_ID, APP_ID = "U0CITEBOT", "B0CITEBOT", "A0CITEBOT"


@dataclass(kw_only=True, slots=True)
class Person:
    """Someone with an account, in this workspace or another one."""

    id: str
    name: str
    team: str = TEAM
    is_bot: bool = False
    email: str = ""


@dataclass(kw_only=True, slots=True)
class Channel:
    """A place to talk. `external` is shared with another organisation, `pending` is about to be.

    Of an `undescribed` one, `conversations.info` does not say whether it is shared.
    """

    id: str
    name: str
    kind: ChannelKind = "channel"
    members: set[str] = field(default_factory=set)
    external: bool = False
    pending: bool = False
    undescribed: bool = False
    archived: bool = False

    def wire(self) -> JSON:
        """The channel as `conversations.*` describe it."""
        kinds = {f"is_{kind}": self.kind == kind for kind in ("channel", "group", "im", "mpim")}
        body = {"id": self.id, "is_archived": self.archived, "is_private": self.kind != "channel", **kinds}
        if self.kind == "im":
            return body | {"user": next(iter(self.members - {BOT_USER}), BOT_USER), "is_ext_shared": self.external}
        if self.undescribed:
            return body | {"name": self.name, "is_member": BOT_USER in self.members}
        shared = {"is_shared": self.external, "is_ext_shared": self.external, "is_org_shared": False}
        return body | shared | {
            "name": self.name,
            "is_member": BOT_USER in self.members,
            "is_pending_ext_shared": self.pending,
            "shared_team_ids": [TEAM, OTHER_TEAM] if self.external else [TEAM],
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Status:
    """What stands below a thread while the app works."""

    text: str
    loading_messages: tuple[str, ...]
    since: float


class Workspace:
    """Holds everything. `publish` is called with each event and the channel where it happened."""

    def __init__(self, *, clock: Clock, changes: Changes, publish: Callable[[JSON, Channel | None], None]) -> None:
        self.clock = clock
        self.people: dict[str, Person] = {}
        self.channels: dict[str, Channel] = {}
        self.ephemerals: list[Message] = []
        self.statuses: dict[tuple[str, str], Status] = {}
        self.sessions: dict[tuple[str, str], str] = {}
        self.titles: dict[tuple[str, str], str] = {}
        self.prompts: dict[tuple[str, str], list[JSON]] = {}
        self.homes: dict[str, JSON] = {}
        self.modals: list[JSON] = []
        self.keeps_blocks = True  # an update that names no blocks leaves the old ones in place
        self.edit_window: float | None = None  # seconds after which a message cannot be edited any more
        self._messages: dict[str, dict[str, Message]] = {}
        self._replies: dict[tuple[str, str], dict[str, Message]] = defaultdict(dict)
        self._publish = publish
        self._changes = changes
        self._last_ts = 0
        self._numbers = itertools.count(1)
        self.people[BOT_USER] = Person(id=BOT_USER, name="citebot", is_bot=True)

    def number(self) -> int:
        """A number that was never given before."""
        return next(self._numbers)

    def next_ts(self) -> str:
        """A timestamp later than all others."""
        self._last_ts = max(self._last_ts + 1, int(self.clock.now() * 1_000_000))
        return f"{self._last_ts // 1_000_000}.{self._last_ts % 1_000_000:06d}"

    def add_channel(self, name: str, kind: ChannelKind, members: set[str], *, external: bool = False) -> Channel:
        """Open a channel."""
        letter = {"channel": "C", "group": "G", "im": "D", "mpim": "G"}[kind]
        channel = Channel(id=f"{letter}{self.number():04d}", name=name, kind=kind, members=members, external=external)
        self.channels[channel.id] = channel
        self._messages[channel.id] = {}
        return channel

    def im(self, user: str) -> Channel:
        """The direct conversation of the app with a person, opened when there is none yet."""
        for channel in self.channels.values():
            if channel.kind == "im" and user in channel.members:
                return channel
        return self.add_channel(user, "im", {user, BOT_USER}, external=self.people[user].team != TEAM)

    def channel(self, identity: str) -> Channel:
        """The channel that the app may see; a person's id means the direct conversation."""
        if identity in self.people:
            return self.im(identity)
        channel = self.channels.get(identity)
        if channel is None or (channel.kind != "channel" and BOT_USER not in channel.members):
            raise SlackError("channel_not_found")
        return channel

    def message(self, channel: str, ts: str) -> Message:
        """One message; `message_not_found` if there is none."""
        found = self._messages.get(channel, {}).get(ts)
        if found is None:
            raise SlackError("message_not_found")
        return found

    def all(self, channel: str) -> list[Message]:
        """Every message of a channel, oldest first."""
        return list(self._messages[channel].values())

    def replies(self, channel: str, root: str) -> list[Message]:
        """The replies of a thread, oldest first."""
        return list(self._replies[channel, root].values()) if (channel, root) in self._replies else []

    def wire(self, message: Message) -> JSON:
        """A message with what its thread adds to it."""
        body = message.wire()
        if message.is_reply:
            parent = self._messages[message.channel].get(message.root)
            return body | ({"parent_user_id": parent.user} if parent else {})
        if replies := self.replies(message.channel, message.ts):
            users = list(dict.fromkeys(each.user for each in replies))
            body |= {"thread_ts": message.ts, "reply_count": len(replies), "latest_reply": replies[-1].ts}
            body |= {"reply_users": users, "reply_users_count": len(users)}
        return body

    def post(self, message: Message) -> None:
        """Put a message into its channel and tell everyone."""
        message.note_version()
        self._messages[message.channel][message.ts] = message
        if message.is_reply:
            self._replies[message.channel, message.root][message.ts] = message
        if message.bot_id == BOT_ID:
            self.statuses.pop((message.channel, message.root), None)  # any post clears the status
        event = self.wire(message) | {"channel": message.channel, "event_ts": message.ts}
        if message.bot_id is None:
            event["client_msg_id"] = f"client-{message.ts}"
        self.tell(event, message.channel)

    def whisper(self, message: Message) -> None:
        """Show a message to one person only; nobody else hears of it."""
        message.note_version()
        self.ephemerals.append(message)
        self.touch()

    def changed(self, message: Message, before: JSON) -> None:
        """Tell everyone that a message has changed since `before`."""
        message.note_version()
        self._tell_hidden("message_changed", message.channel, message=self.wire(message), previous_message=before)

    def remove(self, message: Message) -> None:
        """Delete a message; of one with replies a tombstone stays."""
        before = self.wire(message)
        if self.replies(message.channel, message.ts):
            message.text, message.subtype, message.user = "This message was deleted.", "tombstone", "USLACKBOT"
            message.blocks, message.files = [], []
            self.changed(message, before)
            return
        del self._messages[message.channel][message.ts]
        if message.is_reply:
            del self._replies[message.channel, message.root][message.ts]
        self._tell_hidden("message_deleted", message.channel, deleted_ts=message.ts, previous_message=before)

    def tell(self, event: JSON, channel: str | None = None) -> None:
        """Publish an event and wake those who wait for a change."""
        self._publish(event, self.channels[channel] if channel else None)
        self.touch()

    def touch(self) -> None:
        """Wake those who wait for a change that no event tells of."""
        self._changes.tell()

    def status(self, channel: str, thread_ts: str) -> str:
        """What the status of a thread shows now."""
        status = self.statuses.get((channel, thread_ts))
        if status is None or self.clock.now() - status.since >= STATUS_LIFETIME:
            return ""
        return status.text

    def _tell_hidden(self, subtype: str, channel: str, **details: Any) -> None:
        ts = self.next_ts()
        common = {"type": "message", "subtype": subtype, "hidden": True, "channel": channel, "ts": ts, "event_ts": ts}
        self.tell(common | details, channel)
