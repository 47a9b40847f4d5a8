"""Maps Discord's error codes to the errors of chat platforms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import aiohttp
import discord

from bot.errors import ChatError, EditRefused, MessageTooLong, PlatformUnreachable, PostRefused, RateLimited

UNKNOWN_CHANNEL, UNKNOWN_MESSAGE, UNKNOWN_WEBHOOK = 10003, 10008, 10015
UNKNOWN_INTERACTION, INVALID_TOKEN = 10062, 50027
OLD_EDITS = 30046
UNAUTHORIZED = 401  # a status: the token was reset, and only the new one is accepted
NO_ACCESS, NO_DMS, NO_PERMISSION, NO_THREAD_HERE, INVALID_BODY, ARCHIVED = 50001, 50007, 50013, 50024, 50035, 50083
THREAD_EXISTS, LOCKED, TOO_MANY_THREADS = 160004, 160005, 160006
TOO_LARGE = 40005
# No thread can be started there; a reply can still be sent in the channel.
THREADLESS = frozenset({NO_ACCESS, NO_PERMISSION, NO_THREAD_HERE, TOO_MANY_THREADS})
FORBIDDEN = frozenset({NO_ACCESS, NO_PERMISSION})
GONE = frozenset({UNKNOWN_CHANNEL, UNKNOWN_MESSAGE})

# Where to look, for anyone who reads the log.
_ADVICE: Mapping[int, str] = {
    NO_ACCESS: "Give the bot's role View Channel there.",
    NO_PERMISSION: "Give the bot's role Send Messages, Send Messages in Threads and Create Public Threads there.",
    NO_DMS: "The person takes no direct messages from members of the server.",
    LOCKED: "A moderator has locked the thread.",
}
_CLOUDFLARE_WAIT = 60.0  # seconds; a refusal that is not Discord's own does not say when it ends


class InteractionExpired(ChatError):
    """The quarter of an hour for answering an interaction is over."""


@contextmanager
def map_post_errors() -> Iterator[None]:
    """Turn errors of sending or reading into chat errors."""
    try:
        yield
    except discord.RateLimited as error:
        raise RateLimited(error.retry_after) from error
    except discord.HTTPException as error:
        raise map_error(error) from error
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        raise PlatformUnreachable(f"Discord does not answer ({type(error).__name__}).") from error
    except RuntimeError as error:
        # discord.py has closed the session, since the gateway has refused the token; aiohttp has no name for it.
        if "closed" not in str(error):
            raise
        raise PlatformUnreachable("Discord has ended the connection for good.") from error


@contextmanager
def map_edit_errors() -> Iterator[None]:
    """Turn errors of changing or deleting a message into chat errors."""
    try:
        with map_post_errors():
            yield
    except PostRefused as error:
        raise EditRefused(str(error)) from error


def map_error(error: discord.HTTPException) -> ChatError:
    """Translate a refusal into a chat error."""
    message = describe_error(error)
    if error.code in {UNKNOWN_WEBHOOK, UNKNOWN_INTERACTION, INVALID_TOKEN}:
        return InteractionExpired(message)
    if error.code == OLD_EDITS:
        return EditRefused(message)
    if error.status == 429:
        return parse_retry_after(error.response.headers.get("Retry-After"))
    if error.status == UNAUTHORIZED or error.status >= 500:
        return PlatformUnreachable(message)
    if error.code == TOO_LARGE or (error.code == INVALID_BODY and "in length" in error.text):
        return MessageTooLong(message)
    return PostRefused(message)


def read_error_code(error: BaseException | None) -> int:
    """Return Discord's error code; 0 without one."""
    while error is not None and not isinstance(error, discord.HTTPException):
        error = error.__cause__
    return error.code if error is not None else 0


def describe_error(error: discord.HTTPException) -> str:
    """Describe a refusal by Discord, and its remedy."""
    what = error.text.splitlines()[0] if error.text else f"status {error.status}"
    return " ".join(filter(None, (f"Discord refused: {what} (code {error.code}).", _ADVICE.get(error.code, ""))))


def parse_retry_after(retry_after: str | None) -> RateLimited:
    """Read a Retry-After header; without one, wait for a minute."""
    try:
        return RateLimited(max(0.1, float(retry_after or "")))
    except ValueError:
        return RateLimited(_CLOUDFLARE_WAIT)
