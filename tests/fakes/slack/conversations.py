"""The methods that read: conversations.* and users.conversations."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TypeVar

from tests.fakes.loopback.wire import JSON
from tests.fakes.slack.arguments import Args
from tests.fakes.slack.errors import SlackError, invalid
from tests.fakes.slack.messages import Message
from tests.fakes.slack.workspace import BOT_USER, Workspace

T = TypeVar("T")
MAX_ITEMS = 1000


def page(items: Sequence[T], args: Args, *, default: int) -> tuple[list[T], str]:
    """Return one page and the cursor of the next one, empty behind the last."""
    limit = args.number("limit", default=default, most=MAX_ITEMS)
    start = _offset(args.text("cursor"))
    following = start + limit
    return list(items[start:following]), _cursor(following) if following < len(items) else ""


def kind_of(listed: str) -> str:
    """The kind of channel that a list is asked for by another name."""
    return {"public_channel": "channel", "private_channel": "group"}.get(listed, listed)


def _cursor(offset: int) -> str:
    return base64.b64encode(f"next:{offset}".encode()).decode()


def _offset(cursor: str) -> int:
    try:
        return int(base64.b64decode(cursor).decode().removeprefix("next:")) if cursor else 0
    except ValueError as error:
        raise SlackError("invalid_cursor") from error


class Conversations:
    """Reads channels."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.root_on_every_page = False  # reports differ on whether later pages of a thread repeat its root

    def replies(self, args: Args) -> JSON:
        """Read a thread, oldest first, its root before all."""
        channel = self._readable(args.required("channel"))
        ts = args.required("ts")
        try:
            root = self._workspace.message(channel, ts)
        except SlackError as error:
            raise SlackError("thread_not_found") from error
        thread = [root] if root.is_reply else [root, *self._workspace.replies(channel, ts)]
        found, cursor = page(_between(thread, args, keep=root), args, default=MAX_ITEMS)
        if self.root_on_every_page and found and found[0] is not root:
            found.insert(0, root)
        return self._listed(found, cursor)

    def info(self, args: Args) -> JSON:
        """Describe a channel."""
        channel = self._workspace.channel(args.required("channel"))
        counted = {"num_members": len(channel.members)} if args.flag("include_num_members") else {}
        return {"channel": channel.wire() | counted}

    def memberships(self, args: Args) -> JSON:
        """List the channels that the app is in."""
        wanted = {kind_of(each) for each in args.text("types", "public_channel").split(",")}
        mine = (each for each in self._workspace.channels.values() if BOT_USER in each.members)
        channels = [each for each in mine if each.kind in wanted]
        found, cursor = page(channels, args, default=100)
        return {"channels": [each.wire() for each in found], "response_metadata": {"next_cursor": cursor}}

    def _readable(self, identity: str) -> str:
        channel = self._workspace.channel(identity)
        if BOT_USER not in channel.members:
            raise SlackError("not_in_channel")
        return channel.id

    def _listed(self, found: list[Message], cursor: str) -> JSON:
        messages = [
            self._workspace.wire(each) | ({"metadata": each.metadata} if each.metadata else {}) for each in found
        ]
        return {"messages": messages, "has_more": bool(cursor), "response_metadata": {"next_cursor": cursor}}


def _between(messages: list[Message], args: Args, *, keep: Message | None) -> list[Message]:
    """The messages between `oldest` and `latest`, whose ends count with `inclusive` only."""
    try:
        oldest, latest = float(args.text("oldest", "0") or 0), float(args.text("latest") or "inf")
    except ValueError as error:
        raise invalid("invalid_arguments", "oldest and latest are timestamps") from error
    ends = bool(args.flag("inclusive"))

    def inside(message: Message) -> bool:
        at = float(message.ts)
        return message is keep or oldest < at < latest or (ends and at in {oldest, latest})

    return [message for message in messages if inside(message)]
