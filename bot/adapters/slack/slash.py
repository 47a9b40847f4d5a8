"""Reads slash commands: `/reindex x` is `/citebot reindex x`, and only who wrote it sees the answer. Pure functions."""

from __future__ import annotations

from bot.adapters.slack.client import BotIdentity
from bot.adapters.slack.heard import Body, MessageReceived, make_place, parse_timestamp
from bot.adapters.slack.text import read_text
from bot.adapters.slack.whispers import make_ephemeral_place
from bot.messages import IncomingMessage

COMMANDS = ("/citebot", "/reindex")


def parse_slash_command(body: Body, own: BotIdentity) -> MessageReceived:
    """Read the form of a slash command."""
    name = str(body["command"]).removeprefix("/")
    rest, oversize = read_text(str(body.get("text", "")), own=own.user)
    user, trigger = str(body["user_id"]), str(body.get("trigger_id", ""))
    team = str(body.get("team_id") or own.team)
    return MessageReceived(
        message=IncomingMessage(
            place=make_ephemeral_place(make_place(body.get("channel_id"), own), user),
            id=trigger,
            author=user,
            author_name=str(body.get("user_name", "")),
            text=f"reindex {rest}".strip() if name == "reindex" else rest,
            kind="command",
            sent_at=parse_timestamp(trigger),
            private=True,
            external=team != own.team,
            oversize=oversize,
        ),
        team=team,
        answer_to=str(body.get("response_url", "")),
    )
