"""The methods that read: conversations.*, users.*, bots.info, team.info."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import TypeVar

from tests.fakes.loopback.wire import JSON
from tests.fakes.slack.arguments import Args
from tests.fakes.slack.errors import SlackError, invalid
from tests.fakes.slack.messages import Message
from tests.fakes.slack.workspace import APP_ID, BOT_ID, BOT_USER, TEAM, Channel, Person, Workspace

T = TypeVar("T")
MOST_ITEMS = 1000


def page(items: Sequence[T], args: Args, *, default: int) -> tuple[list[T], str]:
    """Return one page and the cursor of the next one, empty behind the last."""
    limit = args.number("limit", default=default, most=MOST_ITEMS)
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
    """Reads channels and people."""

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
        found, cursor = page(_between(thread, args, keep=root), args, default=MOST_ITEMS)
        if self.root_on_every_page and found and found[0] is not root:
            found.insert(0, root)
        return self._listed(found, cursor)

    def history(self, args: Args) -> JSON:
        """Read what shows in a channel, newest first."""
        channel = self._readable(args.required("channel"))
        shown = [message for message in reversed(self._workspace.all(channel)) if message.in_channel]
        found, cursor = page(_between(shown, args, keep=None), args, default=100)
        return self._listed(found, cursor)

    def info(self, args: Args) -> JSON:
        """Describe a channel."""
        channel = self._workspace.channel(args.required("channel"))
        counted = {"num_members": len(channel.members)} if args.flag("include_num_members") else {}
        return {"channel": channel.wire() | counted}

    def open(self, args: Args) -> JSON:
        """Open the direct conversation with a person."""
        if args.text("channel"):
            return {"channel": {"id": self._workspace.channel(args.text("channel")).id}}
        users = [user for user in args.text("users").split(",") if user]
        if len(users) != 1:
            raise SlackError("not_enough_users" if not users else "method_not_supported_for_channel_type")
        self._person(users[0])
        return {"channel": {"id": self._workspace.im(users[0]).id}}

    def channels(self, args: Args) -> JSON:
        """List the channels that the app may see."""
        return self._channels(args, lambda each: each.kind == "channel" or BOT_USER in each.members)

    def memberships(self, args: Args) -> JSON:
        """List the channels that the app is in."""
        return self._channels(args, lambda each: BOT_USER in each.members)

    def _channels(self, args: Args, which: Callable[[Channel], bool]) -> JSON:
        wanted = {kind_of(each) for each in args.text("types", "public_channel").split(",")}
        channels = [each for each in self._workspace.channels.values() if each.kind in wanted and which(each)]
        found, cursor = page(channels, args, default=100)
        return {"channels": [each.wire() for each in found], "response_metadata": {"next_cursor": cursor}}

    def members(self, args: Args) -> JSON:
        """List who is in a channel."""
        channel = self._workspace.channel(args.required("channel"))
        found, cursor = page(sorted(channel.members), args, default=100)
        return {"members": found, "response_metadata": {"next_cursor": cursor}}

    def user(self, args: Args) -> JSON:
        """Describe a person."""
        person = self._person(args.required("user"))
        profile = {"display_name": person.name, "real_name": person.name, "email": person.email}
        return {
            "user": {
                "id": person.id,
                "team_id": person.team,
                "name": person.name,
                "real_name": person.name,
                "deleted": False,
                "is_bot": person.is_bot,
                "is_stranger": person.team != TEAM,
                "profile": profile | {"team": person.team},
                "tz": "Etc/UTC",
            }
        }

    def bot(self, args: Args) -> JSON:
        """Describe the app's bot."""
        if args.text("bot", BOT_ID) != BOT_ID:
            raise SlackError("bot_not_found")
        bot = {"id": BOT_ID, "deleted": False, "name": "citebot", "app_id": APP_ID, "user_id": BOT_USER}
        return {"bot": bot}

    def team(self, args: Args) -> JSON:
        """Describe the workspace."""
        if args.text("team", TEAM) != TEAM:
            raise SlackError("team_not_found")
        return {"team": {"id": TEAM, "name": "Home", "domain": "home", "email_domain": ""}}

    def _readable(self, identity: str) -> str:
        channel = self._workspace.channel(identity)
        if BOT_USER not in channel.members:
            raise SlackError("not_in_channel")
        return channel.id

    def _person(self, identity: str) -> Person:
        if identity not in self._workspace.people:
            raise SlackError("user_not_found")
        return self._workspace.people[identity]

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
