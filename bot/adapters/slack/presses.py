"""Reads presses of buttons, and what means the same: a reaction, Slack's own stop button. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator

from bot.adapters.slack.blocks import parse_button
from bot.adapters.slack.client import BotIdentity
from bot.adapters.slack.heard import Body, ButtonPressed, make_message_handle, make_place
from bot.adapters.slack.whispers import MARK, make_ephemeral_place
from bot.messages import ButtonPress, Place

STOPPING = frozenset({"x"})  # reactions that mean: stop


def parse_button_presses(body: Body, own: BotIdentity) -> Iterator[ButtonPressed]:
    """Read presses of buttons under replies."""
    container, user = body.get("container") or {}, body.get("user") or {}
    author = str(user.get("id", ""))
    external = str(user.get("team_id") or own.team) != own.team
    for action in body.get("actions") or ():
        meaning = parse_button(str(action.get("action_id", "")), str(action.get("value", "")))
        if meaning is None or container.get("type") != "message":
            continue
        kind, value = meaning
        place = make_place(container.get("channel_id"), own, thread=str(container.get("thread_ts") or ""))
        ts = str(container.get("message_ts", ""))
        if container.get("is_ephemeral"):
            # What one person alone was told is known by the run that told it, as `SlackPlatform` names it.
            place, ts = make_ephemeral_place(place, author), f"{MARK}{value[:20]}.0"
        press = ButtonPress(
            handle=make_message_handle(place, ts), action=kind, author=author, value=value, external=external
        )
        yield ButtonPressed(press=press, place=place, answer_to=str(body.get("response_url", "")))


def parse_reaction(event: Body, body: Body, own: BotIdentity) -> Iterator[ButtonPressed]:
    """Read a reaction to a message of citebot."""
    item = event.get("item") or {}
    mine = event.get("item_user") == own.user and item.get("type") == "message"
    if mine and event.get("reaction") in STOPPING and event.get("user") != own.user:
        yield _stop(make_place(item.get("channel"), own), str(item.get("ts", "")), event, body)


def parse_stop_press(event: Body, body: Body, own: BotIdentity) -> Iterator[ButtonPressed]:
    """Read a press of Slack's own stop button, which ends the streams of a thread."""
    place = make_place(event.get("channel"), own, thread=str(event.get("thread_ts", "")))
    for ts in event.get("streaming_message_ts") or ():
        yield _stop(place, str(ts), event, body)


def _stop(place: Place, ts: str, event: Body, body: Body) -> ButtonPressed:
    external = bool(body.get("is_ext_shared_channel"))
    press = ButtonPress(
        handle=make_message_handle(place, ts), action="stop", author=str(event.get("user", "")), external=external
    )
    return ButtonPressed(press=press, place=place)
