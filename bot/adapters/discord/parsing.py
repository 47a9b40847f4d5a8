"""Parses Discord's events: messages, and citebot's registered commands. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import discord

from agent import fit_text
from bot.adapters.discord.channels import ChannelInfo
from bot.adapters.discord.rendering import OwnUser, list_own_ids, read_text
from bot.conversations.commands import COMMANDS, ChatCommand
from bot.messages import (
    LONGEST_QUOTED,
    MAX_FILES,
    MAX_QUOTED,
    AttachedFile,
    ButtonAction,
    IncomingMessage,
    MessageKind,
)

Json = dict[str, Any]
CHAT_INPUT, SUBCOMMAND, STRING, BOOLEAN = 1, 1, 3, 5
LONGEST_QUESTION = 1_500
MANAGE_SERVER = str(1 << 5)
MAX_CHOICES, LONGEST_CHOICE = 25, 100
_EVERYWHERE: Json = {"contexts": [0, 1], "integration_types": [0]}  # in servers and in DMs, where a server has the bot
# The compared parts of two descriptions of a command; the rest is Discord's own.
_COMPARED: Mapping[str, Any] = {
    "name": "", "description": "", "type": CHAT_INPUT, "default_member_permissions": None, "contexts": None,
    "required": False, "autocomplete": False, "max_length": None,
}  # fmt: skip

REACTIONS: Mapping[str, ButtonAction] = {"❌": "stop", "✅": "approve", "✔️": "approve", "👀": "watch"}  # their meanings
_FROM_PEOPLE = frozenset({discord.MessageType.default, discord.MessageType.reply})


@dataclass(frozen=True, kw_only=True, slots=True)
class UsedCommand:
    """A used command: its words; with `aloud`, everybody may read the answer."""

    words: str
    is_question: bool = False
    aloud: bool = False


def describe_commands() -> Sequence[Json]:
    """Describe all commands for Discord. Only people who manage the server may index, unless they allow others."""
    question = _make_option("question", "Your question", kind=STRING, required=True, max_length=LONGEST_QUESTION)
    share = _make_option("share", "Show the answer to everybody here", kind=BOOLEAN)
    full = _make_option("full", "Begin from nothing", kind=BOOLEAN)
    others = [_make_subcommand(command) for command in COMMANDS if command.name != "reindex"]
    return (
        _make_command("ask", "Ask about the code; only you see the answer", [question, share]),
        _make_command("reindex", "Index the newest commit", [_make_repository_option(), full])
        | {"default_member_permissions": MANAGE_SERVER},
        _make_command("citebot", "Show indexed repositories and the reply mode of this channel", others),
    )


def has_changed_commands(wanted: Sequence[Json], present: Sequence[Json]) -> bool:
    """Whether the registered commands differ; their order does not matter, that of options does."""

    def by_name(command: Json) -> str:
        return str(command["name"])

    return sorted(_normalize_commands(wanted), key=by_name) != sorted(_normalize_commands(present), key=by_name)


def parse_used_command(data: Mapping[str, Any]) -> UsedCommand | None:
    """Parse a used command; None for one that is not citebot's."""
    options = {str(option["name"]): option for option in data.get("options") or ()}
    match data.get("name"):
        case "ask":
            return UsedCommand(
                words=str(_get_option(options, "question")), is_question=True, aloud=bool(_get_option(options, "share"))
            )
        case "reindex":
            full = "full" if _get_option(options, "full") else ""
            return UsedCommand(
                words=" ".join(filter(None, ("reindex", str(_get_option(options, "repository")), full))), aloud=True
            )
        case "citebot" if options:
            name, option = next(iter(options.items()))
            inner = {str(argument["name"]): argument for argument in option.get("options") or ()}
            return UsedCommand(words=" ".join(filter(None, (name, str(_get_option(inner, "repository"))))))
    return None


def read_typed_text(data: Mapping[str, Any]) -> str:
    """Return the typed beginning of a repository's name."""
    for option in data.get("options") or ():
        if option.get("focused"):
            return str(option.get("value", ""))
        if option.get("options"):
            return read_typed_text(option)
    return ""


def complete_repository(names: Sequence[str], text: str) -> Sequence[str]:
    """Return the repositories whose names contain a text, prefix matches first."""
    wanted = text.strip().lower()
    fitting = [name for name in names if wanted in name.lower() and len(name) <= LONGEST_CHOICE]
    return sorted(fitting, key=lambda name: not name.lower().startswith(wanted))[:MAX_CHOICES]


def _make_command(name: str, description: str, options: Sequence[Json]) -> Json:
    return {"name": name, "type": CHAT_INPUT, "description": description, "options": list(options)} | _EVERYWHERE


def _make_subcommand(command: ChatCommand) -> Json:
    description = f"{command.does[0].upper()}{command.does[1:]}"[:100]
    options = [] if command.takes == "nothing" else [_make_repository_option(required=command.takes == "repository")]
    return {"name": command.name, "type": SUBCOMMAND, "description": description, "options": options}


def _make_repository_option(*, required: bool = False) -> Json:
    return _make_option("repository", "Which repository", kind=STRING, required=required, autocomplete=True)


def _make_option(name: str, description: str, *, kind: int, required: bool = False, **more: Any) -> Json:
    return {"name": name, "type": kind, "description": description, "required": required, **more}


def _get_option(options: Mapping[str, Mapping[str, Any]], name: str) -> Any:
    return options[name].get("value", "") if name in options else ""


def _normalize_commands(described: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Drop Discord's additions to descriptions of commands or options."""
    return [
        {key: item.get(key) or default for key, default in _COMPARED.items()}
        | {"options": _normalize_commands(item.get("options") or ())}
        for item in described
    ]


def parse_question(message: discord.Message, channel: ChannelInfo, own: OwnUser) -> IncomingMessage | None:
    """Parse a person's message; None if a bot wrote it, or it has neither a mention nor text."""
    if not (message.type in _FROM_PEOPLE and not message.author.bot and message.webhook_id is None):
        return None
    kind = _classify_message(message, channel, own)
    fitting = fit_text(message.content)
    text = read_text(message, own, fitting or "")
    if kind in {"follow_up", "overheard"} and not (text or fitting is None):
        return None
    begins = channel.is_thread and message.id == channel.id
    return IncomingMessage(
        place=channel.place("" if channel.is_direct else message.id),
        id=str(message.id),
        author=str(message.author.id),
        author_name=message.author.display_name,
        text=f"{channel.title}\n\n{text}" if begins and channel.title else text,
        kind=kind,
        sent_at=message.created_at.timestamp(),
        roles=read_roles(message.author),
        private=channel.is_direct,
        in_thread=channel.is_thread and not begins,
        mentions_others=_has_other_mentions(message, own),
        oversize=len(message.content) if fitting is None else 0,
        files=_read_files(message),
        quoted=_read_quoted(message, own),
        edited_at=message.edited_at.timestamp() if message.edited_at is not None else 0.0,
    )


def _read_files(message: discord.Message) -> tuple[AttachedFile, ...]:
    """Return the files of a message, of a forwarded one, and of the one that it replies to."""
    forwarded = [file for snapshot in message.message_snapshots for file in snapshot.attachments]
    replied = _find_replied(message)
    found = [*message.attachments, *forwarded, *(replied.attachments if replied is not None else ())]
    return tuple(
        AttachedFile(
            name=file.filename,
            media_type=(file.content_type or "").partition(";")[0].strip().lower(),
            size=file.size,
            url=file.url,
        )
        for file in found[:MAX_FILES]
    )


def _read_quoted(message: discord.Message, own: OwnUser) -> tuple[str, ...]:
    """Read the messages that one forwards, and the one that it replies to, unless that is the bot's own."""
    replied = _find_replied(message)
    texts = [snapshot.content for snapshot in message.message_snapshots[:MAX_QUOTED]]
    if replied is not None and replied.author.id != (own.id if own else 0):
        texts.append(replied.content)
    return tuple(filter(None, (read_text(message, own, text[:LONGEST_QUOTED]) for text in texts)))


def _find_replied(message: discord.Message) -> discord.Message | None:
    replied = message.reference.resolved if message.reference else None
    return replied if isinstance(replied, discord.Message) else None


def read_roles(person: discord.abc.User) -> tuple[str, ...]:
    """The roles of a member, except the one that everyone has."""
    roles = person.roles if isinstance(person, discord.Member) else ()
    return tuple(str(role.id) for role in roles if not role.is_default())


def _classify_message(message: discord.Message, channel: ChannelInfo, own: OwnUser) -> MessageKind:
    """Classify a message by its addressee. `@everyone` is nobody; the first message of a post begins its thread."""
    if channel.is_direct:
        return "direct"
    mentioned = {user.id for user in message.mentions} | {role.id for role in message.role_mentions}
    if mentioned & list_own_ids(message, own):
        return "mention"
    return "follow_up" if channel.is_thread and message.id != channel.id else "overheard"


def _has_other_mentions(message: discord.Message, own: OwnUser) -> bool:
    """Whether somebody else is addressed: by name, by a role, with all others, or by a reply."""
    mentioned = {user.id for user in message.mentions} | {role.id for role in message.role_mentions}
    replied = _find_replied(message)
    answered = {own.id if own else 0, message.author.id}
    to_other = replied is not None and replied.author.id not in answered
    return bool(mentioned - list_own_ids(message, own)) or message.mention_everyone or to_other
