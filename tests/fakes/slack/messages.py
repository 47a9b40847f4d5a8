"""A message as the fake keeps it, as the protocol sends it, and as a person sees it."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.loopback.wire import JSON
from tests.fakes.slack.blocks import pressables, text_of

# What rings at people: `<!channel>`, `<@U1>`, `<!subteam^S1>`, also in a Markdown text.
_PING = re.compile(r"<(?:!(?:channel|here|everyone|subteam\^\w+)|@[UW]\w+)(?:\|[^>]*)?>")
_CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
_LINK = re.compile(r"https?://")


@dataclass(kw_only=True, slots=True)
class Message:
    """One message of a channel. `streaming_since` is set while a stream is open."""

    ts: str
    channel: str
    user: str
    team: str
    text: str = ""
    bot_id: str | None = None
    thread_ts: str | None = None
    subtype: str | None = None
    blocks: list[JSON] = field(default_factory=list)
    attachments: list[JSON] = field(default_factory=list)
    files: list[JSON] = field(default_factory=list)
    metadata: JSON | None = None
    reactions: dict[str, list[str]] = field(default_factory=dict)
    tasks: dict[str, JSON] = field(default_factory=dict)
    plan: str = ""
    unfurls: bool = True
    for_user: str | None = None  # an ephemeral message: only this person sees it
    streaming_since: float | None = None
    stopped_by_user: bool = False
    text_shows: bool = False  # also above blocks, as in a stream; elsewhere blocks hide the text
    edited_by: str | None = None
    edits: int = 0
    appends: int = 0
    versions: list[str] = field(default_factory=list)

    @property
    def root(self) -> str:
        """The timestamp of the thread that it belongs to or starts."""
        return self.thread_ts or self.ts

    @property
    def is_reply(self) -> bool:
        """Whether it hangs under another message."""
        return self.thread_ts is not None and self.thread_ts != self.ts

    @property
    def shown(self) -> str:
        """What a person reads: blocks where there are any, behind what was streamed; else the text."""
        streamed = self.text if self.text_shows or not self.blocks else ""
        return "\n".join(part for part in (streamed, text_of(self.blocks)) if part)

    def note_version(self) -> None:
        """Remember what a person sees now."""
        if not self.versions or self.versions[-1] != self.shown:
            self.versions.append(self.shown)

    def wire(self) -> JSON:
        """The message as events and `conversations.*` carry it."""
        body: JSON = {"type": "message", "ts": self.ts, "text": self.text, "user": self.user, "team": self.team}
        extras: dict[str, Any] = {
            "subtype": self.subtype,
            "bot_id": self.bot_id,
            "thread_ts": self.thread_ts,
            "attachments": self.attachments,
            "files": self.files,
            "edited": {"user": self.edited_by, "ts": self.ts} if self.edited_by else None,
            "blocks": self.blocks,
            "reactions": [
                {"name": name, "users": users, "count": len(users)} for name, users in self.reactions.items() if users
            ],
        }
        body |= {name: value for name, value in extras.items() if value}
        if self.subtype == "bot_message":
            del body["user"]
        return copy.deepcopy(body)

    def seen(self) -> Seen:
        """The message as a person sees it."""
        reactions = {name: tuple(users) for name, users in self.reactions.items() if users}
        return Seen(
            ts=self.ts,
            user=self.user,
            text=self.shown,
            edits=self.edits,
            appends=self.appends,
            thread_ts=self.thread_ts,
            is_bot=self.bot_id is not None,
            blocks=copy.deepcopy(self.blocks),
            buttons=tuple(element["action_id"] for _, element in pressables(self.blocks)),
            reactions=reactions,
            files=tuple(each["name"] for each in self.files),
            tasks={each["title"]: each["status"] for each in self.tasks.values()},
            sources={each["text"]: each["url"] for task in self.tasks.values() for each in task.get("sources", [])},
            plan=self.plan,
            streaming=self.streaming_since is not None,
            metadata=copy.deepcopy(self.metadata),
            previews=self.unfurls and _LINK.search(self.shown) is not None,
            pings=tuple(_PING.findall(_CODE.sub("", self.shown))),
            versions=tuple(self.versions),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """A message as a person sees it.

    `edits` counts `chat.update` (or the author's edits), `appends` what a stream brought; `versions` are all
    texts that it ever showed, the present one last; `previews` tells whether Slack would fetch its
    links; `pings` are the live ones, `sources` the addresses that the steps of a stream name, by their texts.
    """

    ts: str
    user: str
    text: str
    edits: int
    appends: int
    thread_ts: str | None
    is_bot: bool
    blocks: list[JSON]
    buttons: tuple[str, ...]
    reactions: dict[str, tuple[str, ...]]
    files: tuple[str, ...]
    tasks: dict[str, str]
    sources: dict[str, str]
    plan: str
    streaming: bool
    metadata: JSON | None
    previews: bool
    pings: tuple[str, ...]
    versions: tuple[str, ...]
