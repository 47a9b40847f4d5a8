"""Reads what people write: questions, follow-ups, edits and deletions. Pure functions."""

from __future__ import annotations

from bot.adapters.slack.client import Identity
from bot.adapters.slack.heard import Asked, Body, Deleted, Edited, Heard, key_of, place_in, seconds
from bot.adapters.slack.text import LONGEST, names, names_others, read_text
from bot.messages import IncomingMessage, MessageKind

_FROM_PEOPLE = frozenset({None, "file_share", "thread_broadcast"})
_SLACKBOT = frozenset({"USLACK", "USLACKBOT"})


def message(event: Body, body: Body, own: Identity) -> Heard | None:
    """Read an event about a message; None for what does not concern citebot."""
    match event.get("subtype"):
        case "message_changed":
            return _changed(event, body, own)
        case "message_deleted":
            return Deleted(key=key_of(event.get("channel"), str(event.get("deleted_ts", "")), own))
        case _:
            return asked(event, body, own)


def _changed(event: Body, body: Body, own: Identity) -> Heard | None:
    """Read an edit. A link preview changes a message, too, but not its text; of a deleted root a tombstone stays."""
    new, old = event.get("message") or {}, event.get("previous_message") or {}
    if new.get("subtype") == "tombstone":
        return Deleted(key=key_of(event.get("channel"), str(new.get("ts", "")), own))
    if new.get("text") == old.get("text"):
        return None
    about = {"channel": event.get("channel"), "channel_type": event.get("channel_type")}
    again = asked({**new, **about}, body, own)
    return Edited(message=again.message, team=again.team) if again else None


def asked(event: Body, body: Body, own: Identity) -> Asked | None:
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
    return Asked(
        message=IncomingMessage(
            place=place_in(event.get("channel"), own, thread=root),
            id=ts,
            author=str(event["user"]),
            text=words,
            kind=kind,
            sent_at=seconds(ts),
            private=kind == "direct",
            in_thread=root != ts,
            external=team != own.team or bool(body.get("is_ext_shared_channel")),
            mentions_others=names_others(text[:LONGEST], own.user),
            oversize=oversize,
        ),
        team=team,
    )


def _kind(event: Body, text: str, own: Identity) -> MessageKind | None:
    """How a message addresses citebot; None for what is said in a channel to nobody."""
    if event.get("channel_type") == "im":
        return "direct"
    if event.get("type") == "app_mention" or names(text, own.user):
        return "mention"
    return "follow_up" if event.get("thread_ts") not in {None, event["ts"]} else None


def _by_person(event: Body, own: Identity) -> bool:
    user = event.get("user")
    return (
        event.get("subtype") in _FROM_PEOPLE
        and not event.get("bot_id")
        and bool(user)
        and user != own.user
        and user not in _SLACKBOT
    )
