"""The scopes and tokens that Slack asks for: what each is needed for, and how to tell them apart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from bot.monitoring.doctor_findings import DoctorFinding, make_problem, make_warning

APP_SCOPE = "connections:write"  # of the app token, for Socket Mode; all others are the bot's

_WRITE = frozenset({"chat:write"})
_INFO = frozenset({"channels:read", "groups:read", "im:read", "mpim:read"})
_HISTORY = frozenset({"channels:history", "groups:history", "im:history", "mpim:history"})
_FILES = frozenset({"files:write"})

# Every method of the Web API that is called. Where a method has several scopes, each stands for a kind of channel.
METHODS: Mapping[str, frozenset[str]] = {
    "apps.connections.open": frozenset({APP_SCOPE}),
    "assistant.threads.setStatus": _WRITE,
    "assistant.threads.setSuggestedPrompts": frozenset({"assistant:write"}),
    "auth.test": frozenset(),
    "chat.appendStream": _WRITE,
    "chat.delete": _WRITE,
    "chat.postEphemeral": _WRITE,
    "chat.postMessage": _WRITE,
    "chat.startStream": _WRITE,
    "chat.stopStream": _WRITE,
    "chat.update": _WRITE,
    "conversations.history": _HISTORY,
    "conversations.info": _INFO,
    "conversations.replies": _HISTORY,
    "files.completeUploadExternal": _FILES,
    "files.getUploadURLExternal": _FILES,
    "users.conversations": frozenset({"channels:read", "groups:read"}),
    "views.publish": frozenset(),
}

# Every event that is handled, and the scope without which Slack does not send it.
EVENTS: Mapping[str, str | None] = {
    "agent_session_stopped": None,
    "app_home_opened": None,
    "app_mention": "app_mentions:read",
    "message.channels": "channels:history",
    "message.groups": "groups:history",
    "message.im": "im:history",
    "message.mpim": "mpim:history",
    "pin_added": "pins:read",
    "pin_removed": "pins:read",
    "reaction_added": "reactions:read",
    "reaction_removed": "reactions:read",
}
SLASH_COMMANDS = "commands"
DOWNLOADS = "files:read"  # of the files that people attach; their addresses are no methods of the Web API

# Without these nobody is answered in a public channel; each of the others is for something that can be done without.
ESSENTIAL = frozenset({"app_mentions:read", "channels:read", "chat:write"})
WITHOUT: Mapping[str, str] = {
    "app_mentions:read": "citebot does not notice mentions",
    "channels:read": "it cannot tell who can read public channels, and treats them as shared with outsiders",
    "chat:write": "citebot cannot answer",
    "assistant:write": "no questions are suggested when somebody opens a conversation with citebot",
    "channels:history": "in public channels it notices only mentions, does not read the thread around them, does not "
    "notice edits, and cannot find an answer again that a crash cut short",
    "commands": "there are no slash commands, but the same words after a mention",
    "files:read": "attached files are not read, and the answer says so",
    "files:write": "the longest answers have no file",
    "groups:history": "in private channels it notices only mentions, does not read the thread around them, does not "
    "notice edits, and cannot find an answer again that a crash cut short",
    "groups:read": "it cannot tell who can read private channels, and treats them as shared with outsiders",
    "im:history": "it receives no direct messages",
    "im:read": "the Home tab lists no repositories, and plans cannot be approved in direct messages",
    "mpim:history": "in group conversations it notices only mentions, does not read the thread around them, does not "
    "notice edits, and cannot find an answer again that a crash cut short",
    "mpim:read": "it cannot tell who can read group conversations, and treats them as shared with outsiders",
    "pins:read": "answers that people pin are not the first to be checked after a push",
    "reactions:read": "an :x: reaction does not stop an answer (the button and the word do), and :eyes: watches none",
}

Variable = Literal["SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET"]

BOT, APP, SECRET = "a bot token", "an app-level token", "a signing secret"
_WANTED: Mapping[Variable, str] = {"SLACK_BOT_TOKEN": BOT, "SLACK_APP_TOKEN": APP, "SLACK_SIGNING_SECRET": SECRET}
# The longer beginnings first.
_BEGINNINGS = (
    ("xoxe.xoxb-", BOT),
    ("xoxb-", BOT),
    ("xapp-", APP),
    ("xoxe.xoxp-", "an app configuration token"),
    ("xoxe-", "a refresh token"),
    ("xoxp-", "a user token"),
    ("xox", "a token of another kind"),
    ("https://hooks.slack.com", "the address of a webhook"),
)
_HEXADECIMAL = re.compile(r"[0-9a-f]{32}")
_WRITABLE = re.compile(r"[!-~]+")

SETTINGS = "https://api.slack.com/apps > the app"
WHERE: Mapping[Variable, str] = {
    "SLACK_BOT_TOKEN": f"{SETTINGS} > OAuth & Permissions > Bot User OAuth Token; it begins with xoxb-.",
    "SLACK_APP_TOKEN": f"{SETTINGS} > Basic Information > App-Level Tokens > Generate Token and Scopes, with the scope "
    "connections:write; it begins with xapp-.",
    "SLACK_SIGNING_SECRET": f"{SETTINGS} > Basic Information > App Credentials > Signing Secret > Show.",
}


def list_bot_scopes() -> frozenset[str]:
    """All scopes that the bot token needs for everything that citebot does."""
    called = frozenset().union(*METHODS.values())
    subscribed = frozenset(filter(None, EVENTS.values()))
    return (called | subscribed | {SLASH_COMMANDS, DOWNLOADS}) - {APP_SCOPE}


def check_token_shape(variable: Variable, value: str) -> Sequence[DoctorFinding]:
    """Say what is wrong with the shape of a value; nothing if it may be right."""
    wanted, found = _WANTED[variable], detect_token_kind(value)
    if not _WRITABLE.fullmatch(value):
        return [
            make_problem(
                f"{variable} contains spaces or characters that are invalid in a token.",
                f"Copy it again: {WHERE[variable]}",
            )
        ]
    if found == wanted:
        return []
    if found:
        return [make_problem(f"{variable} holds {found}, not {wanted}.", f"Take {WHERE[variable]}")]
    if variable == "SLACK_SIGNING_SECRET":  # its form is nowhere promised
        return [make_warning(f"{variable} does not look like {wanted}.", f"Compare it with {WHERE[variable]}")]
    return [make_problem(f"{variable} does not hold {wanted}.", f"Take {WHERE[variable]}")]


def detect_token_kind(value: str) -> str:
    """Name what a value looks like; empty if it looks like nothing of Slack's."""
    if _HEXADECIMAL.fullmatch(value):
        return SECRET
    return next((name for beginning, name in _BEGINNINGS if value.startswith(beginning)), "")
