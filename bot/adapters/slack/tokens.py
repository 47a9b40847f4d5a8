"""Tells Slack's tokens and secrets apart by how they look, and says so when one is in the wrong place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from bot.doctor import DoctorFinding, problem, warning

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


def check_token_shape(variable: Variable, value: str) -> Sequence[DoctorFinding]:
    """Say what is wrong with the look of a value; nothing where it may be what belongs there."""
    wanted, found = _WANTED[variable], detect_token_kind(value)
    if not _WRITABLE.fullmatch(value):
        return [
            problem(f"{variable} holds blanks or characters that no token has.", f"Copy it again: {WHERE[variable]}")
        ]
    if found == wanted:
        return []
    if found:
        return [problem(f"{variable} holds {found}, not {wanted}.", f"Take {WHERE[variable]}")]
    if variable == "SLACK_SIGNING_SECRET":  # its form is nowhere promised
        return [warning(f"{variable} does not look like {wanted}.", f"Compare it with {WHERE[variable]}")]
    return [problem(f"{variable} does not hold {wanted}.", f"Take {WHERE[variable]}")]


def detect_token_kind(value: str) -> str:
    """Name what a value looks like; empty where it looks like nothing of Slack's."""
    if _HEXADECIMAL.fullmatch(value):
        return SECRET
    return next((name for beginning, name in _BEGINNINGS if value.startswith(beginning)), "")
