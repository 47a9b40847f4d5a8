"""Parses Slack's deliveries, and checks their shape before: messages, presses, reactions, commands. Pure functions."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl

from bot.adapters.slack.channels import PLATFORM
from bot.adapters.slack.client import BotIdentity
from bot.adapters.slack.ephemeral import make_ephemeral_place
from bot.adapters.slack.rendering import (
    LONGEST,
    has_mention,
    has_other_mentions,
    parse_button,
    read_text,
    to_plain_markdown,
)
from bot.messages import (
    LONGEST_QUOTED,
    MAX_FILES,
    MAX_QUOTED,
    ONE_PERSON,
    AttachedFile,
    ButtonAction,
    ButtonPress,
    IncomingMessage,
    MessageKey,
    MessageKind,
    Place,
)

_FROM_PEOPLE = frozenset({None, "file_share", "thread_broadcast"})
_SLACKBOT = frozenset({"USLACK", "USLACKBOT"})
Body = Mapping[str, Any]
# The meanings of reactions.
REACTIONS: Mapping[str, ButtonAction] = {
    "x": "stop",
    "white_check_mark": "approve",
    "heavy_check_mark": "approve",
    "eyes": "watch",
}
COMMANDS = ("/citebot", "/reindex")
LONGEST_NAME = 200  # of a file
log = logging.getLogger(__name__)
FORM = "application/x-www-form-urlencoded"
_MAX_FIELDS = 100  # of a form; a slash command has some fifteen
# The fields on which citebot and Bolt depend, wherever they are: texts, texts or objects, objects, lists, timestamps.
_TEXTS = frozenset({
    "action_id", "app_installed_team_id", "block_id", "bot_id", "callback_id", "challenge", "channel_id",
    "channel_type",
    "command", "enterprise_id", "event_id", "execution_id", "id", "item_user", "reaction", "response_url", "subtype",
    "tab", "team_id", "thread_ts", "trigger_id", "type", "user_id", "user_name", "user_team", "value",
})  # fmt: skip
_TEXTS_OR_OBJECTS = frozenset({"channel", "enterprise", "team", "text", "user"})
_OBJECTS = frozenset({
    "assistant_thread", "container", "event", "function_data", "item", "message", "previous_message", "view",
})  # fmt: skip
_LISTS = {"actions": "event", "authorizations": "event", "streaming_message_ts": "ts"}  # with what each item is like
_TIMESTAMPS = frozenset({"deleted_ts", "message_ts", "ts"})
_TIMESTAMP = re.compile(r"[0-9]{1,12}\.[0-9]{1,9}")


def parse_message_event(event: Body, body: Body, own: BotIdentity) -> PlatformEvent | None:
    """Parse a message event; None for irrelevant ones."""
    match event.get("subtype"):
        case "message_changed":
            return _parse_edit(event, body, own)
        case "message_deleted":
            return MessageDeleted(key=make_place(event.get("channel"), own).name_message(event.get("deleted_ts", "")))
        case _:
            return parse_question(event, body, own)


def _parse_edit(event: Body, body: Body, own: BotIdentity) -> PlatformEvent | None:
    """Parse an edit. A link preview changes a message too, but not its text; a deleted root leaves a tombstone."""
    new, old = event.get("message") or {}, event.get("previous_message") or {}
    if new.get("subtype") == "tombstone":
        return MessageDeleted(key=make_place(event.get("channel"), own).name_message(new.get("ts", "")))
    if new.get("text") == old.get("text"):
        return None
    about = {"channel": event.get("channel"), "channel_type": event.get("channel_type")}
    again = parse_question({**new, **about}, body, own)
    if again is None:
        return None
    # Slack's edit time has whole seconds, so two edits may share one. An event's time is unique.
    message = replace(again.message, edited_at=_parse_exact_time(str(event.get("event_ts") or event.get("ts") or "")))
    return MessageEdited(message=message, team=again.team, shared=again.shared)


def parse_question(event: Body, body: Body, own: BotIdentity) -> MessageReceived | None:
    """Parse a person's message; None if a bot wrote it."""
    if not _is_by_person(event, own):
        return None
    text, ts = str(event.get("text", "")), str(event["ts"])
    root = str(event.get("thread_ts") or ts)
    kind = _classify_message(event, text, own)
    team = str(event.get("user_team") or event.get("team") or own.team)
    plain, oversize = read_text(text, own=own.user)
    shared = (
        to_plain_markdown(str(each.get("text") or "")[:LONGEST_QUOTED], own=own.user)
        for each in (event.get("attachments") or ())[:MAX_QUOTED]
        if isinstance(each, Mapping) and (each.get("is_share") or each.get("is_msg_unfurl"))
    )
    return MessageReceived(
        message=IncomingMessage(
            place=make_place(event.get("channel"), own, thread=root),
            id=ts,
            author=str(event["user"]),
            text=plain,
            kind=kind,
            sent_at=_parse_exact_time(ts),
            private=kind == "direct",
            in_thread=root != ts,
            external=_is_external(team, body, own),
            mentions_others=has_other_mentions(text[:LONGEST], own.user),
            oversize=oversize,
            files=_read_files(event),
            quoted=tuple(filter(None, shared)),
        ),
        team=team,
        shared=_read_shared(body),
    )


def _read_files(event: Body) -> tuple[AttachedFile, ...]:
    """Read the attached files of a message; Slack gives no address for those that the app may not see."""
    return tuple(
        AttachedFile(
            name=str(file.get("name") or file.get("title") or "a file")[:LONGEST_NAME],
            media_type=str(file.get("mimetype") or "")[:LONGEST_NAME].lower(),
            size=size if isinstance(size := file.get("size"), int) else 0,
            url=str(file.get("url_private") or ""),
        )
        for file in (event.get("files") or ())[:MAX_FILES]
        if isinstance(file, Mapping) and file.get("mode") != "tombstone"
    )


def _is_external(team: str, body: Body, own: BotIdentity) -> bool:
    """Whether outsiders read a message or wrote it; members of an unshared Grid channel are colleagues."""
    shared = _read_shared(body)
    return bool(shared) or (team not in {own.team, own.enterprise} and not (own.enterprise and shared is False))


def _read_shared(body: Body) -> bool | None:
    """Read from an event whether outsiders can read its channel; None if it does not say."""
    told = body.get("is_ext_shared_channel")
    return told if isinstance(told, bool) else None


def _classify_message(event: Body, text: str, own: BotIdentity) -> MessageKind:
    """Classify a message by the way it addresses citebot."""
    if event.get("channel_type") == "im":
        return "direct"
    if event.get("type") == "app_mention" or has_mention(text, own.user):
        return "mention"
    return "follow_up" if event.get("thread_ts") not in {None, event["ts"]} else "overheard"


def _is_by_person(event: Body, own: BotIdentity) -> bool:
    user = event.get("user")
    return (
        event.get("subtype") in _FROM_PEOPLE
        and not event.get("bot_id")
        and bool(user)
        and user != own.user
        and user not in _SLACKBOT
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageReceived:
    """A new message; `team` is its author's organisation, `shared` the event's statement about its channel."""

    message: IncomingMessage
    team: str
    shared: bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageEdited:
    """An edited message."""

    message: IncomingMessage
    team: str
    shared: bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageDeleted:
    """A deleted message."""

    key: MessageKey


@dataclass(frozen=True, kw_only=True, slots=True)
class ButtonPressed:
    """A pressed button, or an action with the same meaning, in a `place`."""

    press: ButtonPress
    place: Place
    response_url: str = ""


PlatformEvent = MessageReceived | MessageEdited | MessageDeleted | ButtonPressed


def make_place(channel: object, own: BotIdentity, *, thread: str = "") -> Place:
    """A place in the workspace."""
    return Place(platform=PLATFORM, workspace=own.team, channel=str(channel or ""), thread=thread)


def parse_timestamp(ts: str) -> float:
    """Parse the time at the beginning of a timestamp or a trigger."""
    whole = ts.partition(".")[0]
    return float(whole) if whole.isascii() and whole.isdecimal() and len(whole) < 13 else 0.0


def _parse_exact_time(ts: str) -> float:
    """Parse a timestamp with its fraction, which distinguishes events of one second."""
    part = ts.partition(".")[2]
    return parse_timestamp(ts) + (float(f"0.{part}") if part.isascii() and part.isdecimal() and len(part) < 10 else 0.0)


def parse_button_presses(body: Body, own: BotIdentity) -> Iterator[ButtonPressed]:
    """Parse button presses under replies."""
    container, user = body.get("container") or {}, body.get("user") or {}
    author, response_url = str(user.get("id", "")), str(body.get("response_url", ""))
    # In a Grid, whether the channel is shared with outsiders is asked for afterwards.
    external = not own.enterprise and str(user.get("team_id") or own.team) != own.team
    for action in body.get("actions") or ():
        meaning = parse_button(str(action.get("action_id", "")), str(action.get("value", "")))
        if meaning is None or container.get("type") != "message":
            continue
        kind, value = meaning
        place = make_place(container.get("channel_id"), own, thread=str(container.get("thread_ts") or ""))
        ts = str(container.get("message_ts", ""))
        if container.get("is_ephemeral"):
            # A message that one person saw is known by the run that sent it, as `SlackEphemeralMessages` names it.
            place, ts = make_ephemeral_place(place, author), f"{ONE_PERSON}{value[:20]}.0"
        press = ButtonPress(
            handle=place.make_handle(ts), action=kind, author=author, value=value, external=external,
            line=response_url if container.get("is_ephemeral") else "",
        )  # fmt: skip
        yield ButtonPressed(press=press, place=place, response_url=response_url)


def parse_reaction(event: Body, body: Body, own: BotIdentity) -> Iterator[ButtonPressed]:
    """Parse a reaction to a citebot message."""
    item = event.get("item") or {}
    mine = event.get("item_user") == own.user and item.get("type") == "message"
    action = REACTIONS.get(str(event.get("reaction")))
    if event.get("type") == "reaction_removed":
        action = "unwatch" if action == "watch" else None
    if mine and action is not None and event.get("user") != own.user:
        yield _make_press(make_place(item.get("channel"), own), str(item.get("ts", "")), event, body, action)


def parse_pin(event: Body, body: Body, own: BotIdentity) -> Iterator[ButtonPressed]:
    """Parse the pinning or unpinning of a citebot message."""
    item = event.get("item") or {}
    message = item.get("message") or {}
    if message.get("user") == own.user:
        place = make_place(event.get("channel_id") or item.get("channel"), own)
        action: ButtonAction = "pin" if event.get("type") == "pin_added" else "unpin"
        yield _make_press(place, str(message.get("ts", "")), event, body, action)


def parse_stop_press(event: Body, body: Body, own: BotIdentity) -> Iterator[ButtonPressed]:
    """Parse a press of Slack's own stop button, which ends the streams of a thread."""
    place = make_place(event.get("channel"), own, thread=str(event.get("thread_ts", "")))
    for ts in event.get("streaming_message_ts") or ():
        yield _make_press(place, str(ts), event, body, "stop")


def _make_press(place: Place, ts: str, event: Body, body: Body, action: ButtonAction) -> ButtonPressed:
    """Make the press of a button from an equivalent action."""
    external = bool(body.get("is_ext_shared_channel"))
    press = ButtonPress(
        handle=place.make_handle(ts), action=action, author=str(event.get("user", "")), external=external,
        is_reaction=str(event.get("type")).startswith("reaction_"),
    )  # fmt: skip
    return ButtonPressed(press=press, place=place)


def parse_slash_command(body: Body, own: BotIdentity) -> MessageReceived:
    """Read the form of a slash command."""
    name = str(body["command"]).removeprefix("/")
    rest, oversize = read_text(str(body.get("text", "")), own=own.user)
    user, trigger = str(body["user_id"]), str(body.get("trigger_id", ""))
    team, response_url = str(body.get("team_id") or own.team), str(body.get("response_url", ""))
    return MessageReceived(
        message=IncomingMessage(
            place=make_ephemeral_place(make_place(body.get("channel_id"), own), user, response_url=response_url),
            id=trigger,
            author=user,
            author_name=str(body.get("user_name", "")),
            text=f"reindex {rest}".strip() if name == "reindex" else rest,
            kind="command",
            sent_at=parse_timestamp(trigger),
            private=True,
            external=team != own.team and (not own.enterprise or body.get("enterprise_id") != own.enterprise),
            oversize=oversize,
        ),
        team=team,
    )


_PARSERS: Mapping[str, Callable[[Body, Body, BotIdentity], PlatformEvent | Iterable[PlatformEvent] | None]] = {
    "app_mention": parse_question,
    "message": parse_message_event,
    "pin_added": parse_pin,
    "pin_removed": parse_pin,
    "reaction_added": parse_reaction,
    "reaction_removed": parse_reaction,
    "agent_session_stopped": parse_stop_press,
}


def parse_delivery(body: Body, own: BotIdentity) -> tuple[PlatformEvent, ...]:
    """Parse one delivery; None for an irrelevant or malformed one."""
    try:
        if "command" in body:
            return (parse_slash_command(body, own),)
        if body.get("type") == "block_actions":
            return tuple(parse_button_presses(body, own))
        event = body.get("event") or {}
        parse = _PARSERS.get(str(event.get("type", "")))
        found = parse(event, body, own) if parse is not None else None
        if found is None:
            return ()
        return tuple(found) if isinstance(found, Iterable) else (found,)
    except (AttributeError, KeyError, TypeError) as error:
        log.warning("a delivery from Slack does not have the shape of its type: %s", type(error).__name__)
        return ()


def parse_body(text: str, content_type: str) -> Mapping[str, Any] | None:
    """Parse the body of a request: JSON, a form, or JSON in a form; None if it is none of them."""
    try:
        if content_type == FORM:
            fields = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MAX_FIELDS))
            found = json.loads(fields["payload"]) if "payload" in fields else fields
        else:
            found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def is_well_formed(body: Mapping[str, Any]) -> bool:
    """Whether a delivery has the shape that Slack gives it, and its texts can be stored."""
    try:
        json.dumps(body, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    except (ValueError, RecursionError):
        return False
    event = body.get("event", {"type": ""})
    has_type = isinstance(event, dict) and isinstance(event.get("type"), str)
    is_whole = "command" not in body or None not in map(body.get, ("command", "user_id", "channel_id"))
    return has_type and is_whole and _fits("event", body)


def _fits(name: str, value: Any) -> bool:
    """Whether a field has one of the forms that it may have; a missing one is null in some deliveries."""
    if value is None:
        return True
    if name in _TIMESTAMPS:
        return isinstance(value, str) and _TIMESTAMP.fullmatch(value) is not None
    if name in _LISTS:
        return isinstance(value, list) and all(each is not None and _fits(_LISTS[name], each) for each in value)
    if name in _OBJECTS or (name in _TEXTS_OR_OBJECTS and not isinstance(value, str)):
        return isinstance(value, dict) and all(_fits(inner, each) for inner, each in value.items())
    return name not in _TEXTS or isinstance(value, str)
