"""Checks the body of a call as Discord does, and returns the fields of a message."""

from __future__ import annotations

from dataclasses import dataclass

from tests.fakes.discord.components import check_components
from tests.fakes.discord.errors import DiscordError, invalid, too_long
from tests.fakes.loopback.wire import JSON

SUPPRESS_EMBEDS, HAS_THREAD, EPHEMERAL, LOADING, SILENT = 1 << 2, 1 << 5, 1 << 6, 1 << 7, 1 << 12
SETTABLE = SUPPRESS_EMBEDS | SILENT


@dataclass(kw_only=True, slots=True)
class Rules:
    """What Discord does not tell, or a test wants otherwise.

    `counts_utf16` counts a text in UTF-16 units instead of code points. `old_edits` is how many edits of messages
    older than an hour a channel bears in an hour, `old_edit_retry` the `retry_after` of its refusal. `dead_after` is
    how long a session can be resumed.
    """

    most_content: int = 2000
    counts_utf16: bool = False
    most_file: int = 10 * 1024 * 1024
    most_active_threads: int = 1000
    old_edits: int = 3
    old_edit_retry: float = 0.01
    nonce_lifetime: float = 300.0
    dead_after: float = 180.0

    def length(self, text: str) -> int:
        """Count a text as Discord does."""
        return len(text.encode("utf-16-le")) // 2 if self.counts_utf16 else len(text)


def checked(body: JSON, rules: Rules, *, flags: int = 0) -> JSON:
    """Return the fields that a body sets, or refuse it; `flags` are those of the message that it edits."""
    found: JSON = {}
    if "flags" in body:
        found["flags"] = flags & ~SUPPRESS_EMBEDS | (int(body["flags"] or 0) & SETTABLE)
    if "content" in body:
        found["content"] = _content(body["content"], rules)
    if "components" in body:
        found["components"] = body["components"] or []
        check_components(found["components"])
    return found


def check_thread_name(name: object) -> str:
    """Return the name of a thread, or refuse it."""
    if not isinstance(name, str):
        raise invalid("name", "BASE_TYPE_REQUIRED", "This field is required")
    if not 1 <= len(name.strip()) <= 100:
        raise too_long("name", 100, 1)
    return name.strip()


def _content(given: object, rules: Rules) -> str:
    if given is None:
        return ""
    if not isinstance(given, str):
        raise invalid("content", "BASE_TYPE_STRING", "Could not interpret as string.")
    text = given.strip()  # Discord trims before it counts
    if rules.length(text) > rules.most_content:
        raise too_long("content", rules.most_content)
    return text


def refuse_empty(*parts: object) -> None:
    """Refuse a message in which nothing is."""
    if not any(parts):
        raise DiscordError(50006)
