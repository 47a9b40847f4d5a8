"""Reads what people write: questions, follow-ups, edits and deletions. Pure functions."""

from __future__ import annotations

from bot.adapters.slack.client import BotIdentity
from bot.adapters.slack.heard import (
    Body,
    MessageDeleted,
    MessageEdited,
    MessageReceived,
    PlatformEvent,
    make_message_key,
    make_place,
    parse_timestamp,
)
from bot.adapters.slack.text import LONGEST, has_mention, has_other_mentions, read_text
from bot.messages import IncomingMessage, MessageKind

_FROM_PEOPLE = frozenset({None, "file_share", "thread_broadcast"})
_SLACKBOT = frozenset({"USLACK", "USLACKBOT"})


def parse_message_event(event: Body, body: Body, own: BotIdentity) -> PlatformEvent | None:
    """Read an event about a message; None for what does not concern citebot."""
    match event.get("subtype"):
        case "message_changed":
            return _parse_edit(event, body, own)
        case "message_deleted":
            return MessageDeleted(key=make_message_key(event.get("channel"), str(event.get("deleted_ts", "")), own))
        case _:
            return parse_question(event, body, own)


def _parse_edit(event: Body, body: Body, own: BotIdentity) -> PlatformEvent | None:
    """Read an edit. A link preview changes a message, too, but not its text; of a deleted root a tombstone stays."""
    new, old = event.get("message") or {}, event.get("previous_message") or {}
    if new.get("subtype") == "tombstone":
        return MessageDeleted(key=make_message_key(event.get("channel"), str(new.get("ts", "")), own))
    if new.get("text") == old.get("text"):
        return None
    about = {"channel": event.get("channel"), "channel_type": event.get("channel_type")}
    again = parse_question({**new, **about}, body, own)
    return MessageEdited(message=again.message, team=again.team) if again else None


def parse_question(event: Body, body: Body, own: BotIdentity) -> MessageReceived | None:
    """Read a message of a person; None where it is said to nobody, or by a bot."""
    if not _by_person(event, own):
        return None
    text, ts = str(event.get("text", "")), str(event["ts"])
    root = str(event.get("thread_ts") or ts)
    kind = _kind(event, text, own)
    if kind is None:
        return None
    team = str(event.get("user_team") or event.get("team") or own.team)
    words, oversize = read_text(text, own=own.user)
    return MessageReceived(
        message=IncomingMessage(
            place=make_place(event.get("channel"), own, thread=root),
            id=ts,
            author=str(event["user"]),
            text=words,
            kind=kind,
            sent_at=parse_timestamp(ts),
            private=kind == "direct",
            in_thread=root != ts,
            external=team != own.team or bool(body.get("is_ext_shared_channel")),
            mentions_others=has_other_mentions(text[:LONGEST], own.user),
            oversize=oversize,
        ),
        team=team,
    )


def _kind(event: Body, text: str, own: BotIdentity) -> MessageKind | None:
    """How a message addresses citebot; None for what is said in a channel to nobody."""
    if event.get("channel_type") == "im":
        return "direct"
    if event.get("type") == "app_mention" or has_mention(text, own.user):
        return "mention"
    return "follow_up" if event.get("thread_ts") not in {None, event["ts"]} else None


def _by_person(event: Body, own: BotIdentity) -> bool:
    user = event.get("user")
    return (
        event.get("subtype") in _FROM_PEOPLE
        and not event.get("bot_id")
        and bool(user)
        and user != own.user
        and user not in _SLACKBOT
    )
