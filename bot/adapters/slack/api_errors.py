"""Maps Slack's error names to the errors of chat platforms."""

from __future__ import annotations

from bot.errors import (
    ChatError,
    EditRefused,
    MessageTooLong,
    PlatformUnreachable,
    PostRefused,
    RateLimited,
    StreamGone,
    StreamRefused,
    StreamStopped,
)

# Slack failed, or did not say whether it did anything.
UNSURE = frozenset({
    "fatal_error", "internal_error", "request_timeout", "service_unavailable", "team_added_to_org",
})  # fmt: skip
# The token is useless until somebody installs the app again: that is not the fault of the place.
TOKEN = frozenset({"account_inactive", "invalid_auth", "not_authed", "token_expired", "token_revoked"})
TOO_LONG = frozenset({"msg_too_long", "msg_blocks_too_long", "msg_blocks_too_many"})
CLOSED = frozenset({
    "as_user_not_supported", "cannot_reply_to_message", "channel_not_found", "ekm_access_denied", "is_archived",
    "is_inactive", "messages_tab_disabled", "no_permission", "not_in_channel", "restricted_action",
    "restricted_action_non_threadable_channel", "restricted_action_read_only_channel",
    "restricted_action_thread_locked", "team_access_not_granted", "thread_not_found", "user_not_in_channel",
})  # fmt: skip
STREAM_ENDED = frozenset({
    "message_not_found", "message_not_in_streaming_state", "message_not_owned_by_app", "method_deprecated",
    "feature_not_enabled", "unknown_method",
})  # fmt: skip

# Where to look, for anyone who reads the log.
_ADVICE = {
    "missing_scope": "Add the scope under OAuth & Permissions and install the app again.",
    "not_in_channel": "Invite the app to the channel.",
    "channel_not_found": "Invite the app to the channel.",
    "invalid_auth": "Copy the bot token again from OAuth & Permissions.",
    "token_revoked": "Install the app again and copy the new bot token.",
    "account_inactive": "Install the app again and copy the new bot token.",
}

_APP_ADVICE = (
    "Switch Socket Mode on, make a token with the scope connections:write under Basic Information > App-Level Tokens, "
    "and set SLACK_APP_TOKEN to it."
)


def map_post_error(name: str, method: str, needed: str = "") -> ChatError:
    """Translate a refusal of calls that send or read messages."""
    message = describe_error(name, method, needed)
    if name in UNSURE | TOKEN:
        return PlatformUnreachable(message)
    if name in TOO_LONG:
        return MessageTooLong(message)
    return PostRefused(message)


def map_bot_token_error(name: str, method: str, needed: str = "") -> ChatError:
    """Translate a refusal to name the token's owner, which shows whether Slack accepts the token."""
    return PostRefused(describe_error(name, method, needed)) if name in TOKEN else map_post_error(name, method, needed)


def map_app_token_error(name: str, method: str, needed: str = "") -> ChatError:
    """Translate a refusal to open a connection with the app token."""
    message = f"Slack refused {method}: {name}{f' ({needed})' if needed else ''}."
    return PlatformUnreachable(message) if name in UNSURE else PostRefused(f"{message} {_APP_ADVICE}")


def map_edit_error(name: str, method: str, needed: str = "") -> ChatError:
    """Translate a refusal to change or delete a message."""
    error = map_post_error(name, method, needed)
    return EditRefused(str(error)) if isinstance(error, PostRefused) else error


def map_stream_start_error(name: str, method: str, needed: str = "") -> ChatError:
    """Translate a refusal to begin a stream: the place accepts no messages, or there are no streams."""
    error = map_post_error(name, method, needed)
    return StreamRefused(str(error)) if isinstance(error, PostRefused) and name not in CLOSED else error


def map_stream_error(name: str, method: str, needed: str = "") -> ChatError:
    """Translate a refusal of an open stream."""
    error = map_post_error(name, method, needed)
    if name == "stopped_by_user":
        return StreamStopped(str(error))
    return StreamGone(str(error)) if name in STREAM_ENDED or isinstance(error, PostRefused) else error


def describe_error(name: str, method: str, needed: str = "") -> str:
    """Describe a refusal by Slack, and its remedy."""
    scope = f" ({needed})" if needed else ""
    return " ".join(filter(None, (f"Slack refused {method}: {name}{scope}.", _ADVICE.get(name, ""))))


def parse_retry_after(retry_after: str | None) -> RateLimited:
    """Read a Retry-After header; without one, wait for a second."""
    try:
        return RateLimited(max(0.1, float(retry_after or 1)))
    except ValueError:
        return RateLimited(1.0)
