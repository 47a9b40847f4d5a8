"""What a message may hold: the body of a call, checked, as the fields of a message."""

from __future__ import annotations

from dataclasses import dataclass

from tests.fakes.discord.components import check_components
from tests.fakes.discord.errors import DiscordError, invalid, too_long
from tests.fakes.loopback.wire import JSON

SUPPRESS_EMBEDS, HAS_THREAD, EPHEMERAL, LOADING, SILENT, COMPONENTS_V2 = (
    1 << 2,
    1 << 5,
    1 << 6,
    1 << 7,
    1 << 12,
    1 << 15,
)
SETTABLE = SUPPRESS_EMBEDS | SILENT | COMPONENTS_V2
MOST_EMBEDS, MOST_EMBED_TEXT = 10, 6000
EMBED_LIMITS = {"title": 256, "description": 4096}


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
    v2 = bool(found.get("flags", flags) & COMPONENTS_V2)
    if "content" in body:
        found["content"] = _content(body["content"], rules)
    if "embeds" in body:
        found["embeds"] = _embeds(body["embeds"] or [])
    if "components" in body:
        found["components"] = body["components"] or []
        check_components(found["components"], v2=v2)
    if v2 and (found.get("content") or found.get("embeds")):
        message = "The 'content' and 'embeds' fields cannot be used with MessageFlags.IS_COMPONENTS_V2"
        raise invalid("content", "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2", message)
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


def _embeds(embeds: list[JSON]) -> list[JSON]:
    if len(embeds) > MOST_EMBEDS:
        raise too_long("embeds", MOST_EMBEDS)
    for number, embed in enumerate(embeds):
        for name, most in EMBED_LIMITS.items():
            if len(embed.get(name) or "") > most:
                raise too_long(f"embeds.{number}.{name}", most)
        _fields(embed.get("fields") or [], number)
    if sum(_size(embed) for embed in embeds) > MOST_EMBED_TEXT:
        raise invalid("embeds", "MAX_EMBED_SIZE_EXCEEDED", "Embed size exceeds maximum size of 6000")
    return [{"type": "rich", **embed} for embed in embeds]


def _fields(fields: list[JSON], number: int) -> None:
    if len(fields) > 25:
        raise too_long(f"embeds.{number}.fields", 25)
    for place, field in enumerate(fields):
        for name, most in (("name", 256), ("value", 1024)):
            if not 1 <= len(field.get(name) or "") <= most:
                raise too_long(f"embeds.{number}.fields.{place}.{name}", most, 1)


def _size(embed: JSON) -> int:
    fields = [field[name] for field in embed.get("fields") or [] for name in ("name", "value")]
    outer = [embed.get("title"), embed.get("description")]
    outer += [(embed.get("footer") or {}).get("text"), (embed.get("author") or {}).get("name")]
    return sum(len(text or "") for text in [*outer, *fields])


def refuse_empty(*parts: object) -> None:
    """Refuse a message in which nothing is."""
    if not any(parts):
        raise DiscordError(50006)
