"""Turns what happens in the workspace into the events that the app has subscribed to."""

from __future__ import annotations

from collections.abc import Callable

from tests.fakes.loopback.wire import JSON
from tests.fakes.slack.workspace import APP_ID, BOT_ID, BOT_USER, TEAM, Channel

SUBSCRIPTIONS = frozenset({
    "agent_session_stopped", "app_context_changed", "app_home_opened", "app_mention", "assistant_thread_started",
    "member_joined_channel", "message.channels", "message.groups", "message.im", "message.mpim", "pin_added",
    "pin_removed", "reaction_added", "reaction_removed",
})  # fmt: skip
FAMILIES = {"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}
MENTIONING = {None, "file_share", "thread_broadcast"}  # subtypes whose text can mention the app


class Events:
    """The Events API up to the delivery: subscriptions, membership, and the pair that a mention becomes."""

    def __init__(self, subscriptions: set[str], send: Callable[[JSON], None], now: Callable[[], float]) -> None:
        self.subscriptions = subscriptions
        self.message_first = False  # of a mention's two events, `app_mention` usually comes first
        self._send = send
        self._now = now
        self._count = 0

    def publish(self, event: JSON, channel: Channel | None) -> None:
        """Send the event, and the mention in it, if the app may hear of it."""
        if channel is not None and BOT_USER not in channel.members:
            return
        found = [self._message(event, channel), self._mention(event, channel)]
        for each in found if self.message_first else reversed(found):
            if each is not None:
                self._send(self._wrapped(each, channel))

    def _message(self, event: JSON, channel: Channel | None) -> JSON | None:
        if event["type"] != "message" or channel is None:
            return event if event["type"] in self.subscriptions else None
        if f"message.{FAMILIES[channel.kind]}" not in self.subscriptions:
            return None
        return event | {"channel_type": channel.kind}

    def _mention(self, event: JSON, channel: Channel | None) -> JSON | None:
        if event["type"] != "message" or channel is None or "app_mention" not in self.subscriptions:
            return None
        if channel.kind == "im" or event.get("subtype") not in MENTIONING or event.get("bot_id") == BOT_ID:
            return None
        if f"<@{BOT_USER}>" not in event["text"]:
            return None
        return {name: value for name, value in event.items() if name != "subtype"} | {"type": "app_mention"}

    def _wrapped(self, event: JSON, channel: Channel | None) -> JSON:
        self._count += 1
        authorization = {"enterprise_id": None, "team_id": TEAM, "user_id": BOT_USER, "is_bot": True}
        return {
            "token": "legacy-token",
            "team_id": TEAM,
            "context_team_id": TEAM,
            "api_app_id": APP_ID,
            "event": event,
            "type": "event_callback",
            "event_id": f"Ev{self._count:05d}",
            "event_time": int(self._now()),
            "authorizations": [authorization | {"is_enterprise_install": False}],
            "is_ext_shared_channel": channel is not None and channel.external,
            "event_context": f"context-{self._count}",
        }
