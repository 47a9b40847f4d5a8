"""Checks the Slack set-up: tokens, scopes and channels, and lists the parts that cannot be checked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bot.adapters.slack.api_errors import UNSURE, map_post_error
from bot.adapters.slack.client import API_URL, BotIdentity, SlackClient, open_client
from bot.adapters.slack.endpoint import PATH
from bot.adapters.slack.parsing import COMMANDS
from bot.clock import Clock
from bot.errors import ChatError, RateLimited
from bot.monitoring.doctor_findings import DoctorFinding, make_ok, make_problem, make_warning, note

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
# Longer prefixes first.
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
    """List all scopes that the bot token needs for every feature."""
    called = frozenset().union(*METHODS.values())
    subscribed = frozenset(filter(None, EVENTS.values()))
    return (called | subscribed | {SLASH_COMMANDS, DOWNLOADS}) - {APP_SCOPE}


def check_token_shape(variable: Variable, value: str) -> Sequence[DoctorFinding]:
    """Explain what is wrong with the shape of a value; empty if it may be right."""
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
    """Name the kind of a token; empty if it is none of Slack's."""
    if _HEXADECIMAL.fullmatch(value):
        return SECRET
    return next((name for beginning, name in _BEGINNINGS if value.startswith(beginning)), "")


MANIFEST = "slack-manifest.yaml"
_PAGES = 5
_HOW_TO_ADD = (
    f"https://api.slack.com/apps > Create New App > From a manifest, with {MANIFEST}. Then set SLACK_BOT_TOKEN "
    "(Install App) and SLACK_APP_TOKEN (Basic Information > App-Level Tokens, with the scope connections:write)."
)
_REINSTALL = f"{SETTINGS} > Install App > Reinstall to Workspace, and copy the new token."
_SOCKET_MODE = f"{SETTINGS} > Socket Mode > Enable Socket Mode, and copy SLACK_APP_TOKEN from the same app."
# The remedy, by the name of Slack's refusal.
_BOT_ADVICE: Mapping[str, str] = {
    "account_inactive": _REINSTALL,
    "invalid_auth": f"Copy it again: {WHERE['SLACK_BOT_TOKEN']}",
    "not_allowed_token_type": f"Take {WHERE['SLACK_BOT_TOKEN']}",
    "token_expired": f"{SETTINGS} > OAuth & Permissions: tokens are rotated, which citebot cannot do. {_REINSTALL}",
    "token_revoked": _REINSTALL,
}
_APP_ADVICE: Mapping[str, str] = {
    "invalid_auth": f"Make a new one: {WHERE['SLACK_APP_TOKEN']}",
    "missing_scope": f"It lacks the scope {APP_SCOPE}. Make a new one: {WHERE['SLACK_APP_TOKEN']}",
    "not_allowed_token_type": f"Take {WHERE['SLACK_APP_TOKEN']}",
    "token_revoked": f"Make a new one: {WHERE['SLACK_APP_TOKEN']}",
}


@dataclass(frozen=True, kw_only=True)
class SlackCredentials:
    """The tokens and secrets for Slack; unset ones are empty."""

    bot_token: str = ""
    app_token: str = ""
    signing_secret: str = ""
    mode: Literal["socket", "http"] = "socket"
    api_url: str = API_URL

    def __repr__(self) -> str:
        return f"SlackCredentials(mode={self.mode!r}, api_url={self.api_url!r})"


class _Refused(ChatError):
    """A refusal, with Slack's name for it."""

    def __init__(self, name: str, method: str) -> None:
        super().__init__(f"Slack refused {method}: {name}.")
        self.name = name


def _map_check_error(name: str, method: str, needed: str = "") -> ChatError:
    """Distinguish problems of a token from problems of Slack."""
    return map_post_error(name, method, needed) if name in UNSURE else _Refused(name, method)


async def run_diagnostics(credentials: SlackCredentials, clock: Clock) -> Sequence[DoctorFinding]:
    """Check everything that the available tokens allow, without visible effects."""
    if not (credentials.bot_token or credentials.app_token or credentials.signing_secret):
        return [note("Slack is not set up.", _HOW_TO_ADD)]
    async with open_client(credentials.bot_token, clock, base_url=credentials.api_url) as client:
        bot_findings = await _check_bot_token(client, credentials.bot_token)
        mode_findings = (
            _check_http_mode(credentials)
            if credentials.mode == "http"
            else await _check_app_token(client, credentials.app_token)
        )
    return [*bot_findings, *mode_findings, _note_unchecked(credentials.mode)]


async def _check_bot_token(client: SlackClient, token: str) -> Sequence[DoctorFinding]:
    """Check the bot token's owner, scopes and channels."""
    if wrong := _check_token("SLACK_BOT_TOKEN", token):
        return wrong
    try:
        identity = await client.identity(_map_check_error)
    except _Refused as refused:
        return [_report_refusal("SLACK_BOT_TOKEN", refused, _BOT_ADVICE)]
    except ChatError as error:
        return [_report_no_answer(error)]
    if not identity.bot:
        return [make_problem("SLACK_BOT_TOKEN belongs to a person, not to a bot.", f"Take {WHERE['SLACK_BOT_TOKEN']}")]
    who = make_ok(f"SLACK_BOT_TOKEN works: @{identity.name or identity.user} in {identity.workspace or identity.team}.")
    return [who, *_check_scopes(identity.scopes), *await _check_channels(client, identity)]


def _check_scopes(granted: frozenset[str]) -> Sequence[DoctorFinding]:
    """Compare the granted scopes with the required ones."""
    if not granted:
        return [
            note("Slack does not report the scopes of the bot token.", f"Compare them with {MANIFEST}: {SETTINGS}.")
        ]
    missing = [_report_missing_scope(scope) for scope in WITHOUT if scope not in granted]
    spare = sorted(granted - list_bot_scopes())
    unused = [note(f"Scopes that citebot does not use: {', '.join(spare)}.")] if spare else []
    return [*(missing or [make_ok("The bot token has all scopes.")]), *unused]


def _report_missing_scope(scope: str) -> DoctorFinding:
    what = f"The scope {scope} is missing: {WITHOUT[scope]}."
    events = [event for event, needed in EVENTS.items() if needed == scope]
    also = f"; then Event Subscriptions > Subscribe to bot events: {', '.join(events)}" if events else ""
    advice = (
        f"{SETTINGS} > OAuth & Permissions > Scopes > Bot Token Scopes > Add an OAuth Scope: {scope}{also}; "
        "then Install App > Reinstall to Workspace."
    )
    return make_problem(what, advice) if scope in ESSENTIAL else make_warning(what, advice)


async def _check_channels(client: SlackClient, identity: BotIdentity) -> Sequence[DoctorFinding]:
    """Whether people can mention the bot in some channel."""
    kinds = {"public_channel": "channels:read", "private_channel": "groups:read"}
    types = [kind for kind, scope in kinds.items() if scope in identity.scopes]
    unseen = " and ".join(scope for scope in kinds.values() if scope not in identity.scopes)
    if not types:
        return [note(f"The app's channels cannot be listed without {unseen}.")]
    try:
        count, more = await _count_channels(client, ",".join(types))
    except ChatError as error:
        return [make_warning(f"The app's channels could not be listed: {error}", "Try again in a minute.")]
    if count:
        return [make_ok(f"The app is in {count}{' or more' * more} channel{'s' * (count != 1)}.")]
    if unseen:
        return [note(f"The app is in no channel that can be seen without {unseen}.")]
    return [
        make_warning(
            "The app is in no channel.", f"In a channel of Slack, write: /invite @{identity.name or 'citebot'}"
        )
    ]


async def _count_channels(client: SlackClient, types: str) -> tuple[int, bool]:
    """Count the app's channels; a page may be empty though others follow."""
    count, cursor = 0, ""
    for _ in range(_PAGES):
        answer = await client.send(
            lambda: client.web.users_conversations(
                types=types,
                exclude_archived=True,
                limit=200,
                cursor=cursor or None,  # noqa: B023 - called at once
            )
        )
        count += len(answer["channels"])
        cursor = (answer.get("response_metadata") or {}).get("next_cursor") or ""
        if not cursor:
            break
    return count, bool(cursor)


async def _check_app_token(client: SlackClient, token: str) -> Sequence[DoctorFinding]:
    """Check whether a connection could be opened, by requesting an unused address."""
    if wrong := _check_token("SLACK_APP_TOKEN", token):
        return wrong
    try:
        await client.send(lambda: client.web.apps_connections_open(app_token=token), _map_check_error)
    except _Refused as refused:
        return [_report_refusal("SLACK_APP_TOKEN", refused, _APP_ADVICE, otherwise=_SOCKET_MODE)]
    except ChatError as error:
        return [_report_no_answer(error)]
    return [make_ok("SLACK_APP_TOKEN works, and Socket Mode is on.")]


def _check_http_mode(credentials: SlackCredentials) -> Sequence[DoctorFinding]:
    """Check HTTP mode, which only needs the signing secret; only a request from Slack can prove that."""
    wrong = _check_token("SLACK_SIGNING_SECRET", credentials.signing_secret)
    address = f"https://YOUR.HOST{PATH}"
    return wrong or [
        note(
            "SLACK_SIGNING_SECRET is set. Only a request from Slack can confirm it.",
            f"With citebot running, {SETTINGS} > Event Subscriptions > Request URL {address} has to say Verified; "
            "Interactivity & Shortcuts and each of the Slash Commands need the same address.",
        )
    ]


def _note_unchecked(mode: Literal["socket", "http"]) -> DoctorFinding:
    """Note the unchecked parts: Slack shows an app's manifest only to its configuration tokens, which citebot
    does not use.
    """
    tokens = ", and whether both tokens belong to the same app" if mode == "socket" else ""
    return note(
        f"Not checked, because Slack does not show it to these tokens: the events ({', '.join(EVENTS)}) and commands "
        f"({', '.join(COMMANDS)}) the app has, interactivity, App Home and the agent view{tokens}.",
        f"Compare {SETTINGS} > App Manifest with {MANIFEST}.",
    )


def _check_token(variable: Variable, value: str) -> Sequence[DoctorFinding]:
    return (
        check_token_shape(variable, value)
        if value
        else [make_problem(f"{variable} is not set.", f"Take {WHERE[variable]}")]
    )


def _report_refusal(
    variable: Variable, refused: _Refused, advice: Mapping[str, str], *, otherwise: str = ""
) -> DoctorFinding:
    return make_problem(
        f"{variable} does not work. {refused}", advice.get(refused.name, otherwise or f"Take {WHERE[variable]}")
    )


def _report_no_answer(error: ChatError) -> DoctorFinding:
    if isinstance(error, RateLimited):
        return make_warning(f"Slack was not asked: {error}", "Try again then.")
    return make_problem(
        str(error), "Check the network, HTTPS_PROXY and SLACK_API_BASE_URL; https://status.slack.com lists outages."
    )
