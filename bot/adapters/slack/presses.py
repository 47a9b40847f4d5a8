"""Reads presses of buttons, and what means the same: a reaction, Slack's own stop button. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator

from bot.adapters.slack.blocks import pressed
from bot.adapters.slack.client import Identity
from bot.adapters.slack.heard import Body, Pressed, handle_of, place_in
from bot.adapters.slack.whispers import MARK, place_of
from bot.messages import Place, Press

STOPPING = frozenset({"x"})  # reactions that mean: stop


def presses(body: Body, own: Identity) -> Iterator[Pressed]:
    """Read presses of buttons under replies."""
    container, user = body.get("container") or {}, body.get("user") or {}
    author = str(user.get("id", ""))
    external = str(user.get("team_id") or own.team) != own.team
    for action in body.get("actions") or ():
        meaning = pressed(str(action.get("action_id", "")), str(action.get("value", "")))
        if meaning is None or container.get("type") != "message":
            continue
        kind, value = meaning
        place = place_in(container.get("channel_id"), own, thread=str(container.get("thread_ts") or ""))
        ts = str(container.get("message_ts", ""))
        if container.get("is_ephemeral"):
            # What one person alone was told is known by the run that told it, as `SlackPlatform` names it.
            place, ts = place_of(place, author), f"{MARK}{value[:20]}.0"
        press = Press(handle=handle_of(place, ts), action=kind, author=author, value=value, external=external)
        yield Pressed(press=press, place=place, answer_to=str(body.get("response_url", "")))


def reaction(event: Body, body: Body, own: Identity) -> Iterator[Pressed]:
    """Read a reaction to a message of citebot."""
    item = event.get("item") or {}
    mine = event.get("item_user") == own.user and item.get("type") == "message"
    if mine and event.get("reaction") in STOPPING and event.get("user") != own.user:
        yield _stop(place_in(item.get("channel"), own), str(item.get("ts", "")), event, body)


def stopped(event: Body, body: Body, own: Identity) -> Iterator[Pressed]:
    """Read a press of Slack's own stop button, which ends the streams of a thread."""
    place = place_in(event.get("channel"), own, thread=str(event.get("thread_ts", "")))
    for ts in event.get("streaming_message_ts") or ():
        yield _stop(place, str(ts), event, body)


def _stop(place: Place, ts: str, event: Body, body: Body) -> Pressed:
    external = bool(body.get("is_ext_shared_channel"))
    press = Press(handle=handle_of(place, ts), action="stop", author=str(event.get("user", "")), external=external)
    return Pressed(press=press, place=place)
