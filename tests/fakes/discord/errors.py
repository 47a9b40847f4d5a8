"""Errors of the fake Discord: a status, Discord's own code, and a sentence."""

from __future__ import annotations

from typing import Any

from tests.fakes.loopback.wire import JSON

# code: (status, sentence)
REFUSALS = {
    0: (401, "401: Unauthorized"),
    10003: (404, "Unknown Channel"),
    10004: (404, "Unknown Guild"),
    10007: (404, "Unknown Member"),
    10008: (404, "Unknown Message"),
    10013: (404, "Unknown User"),
    10014: (400, "Unknown Emoji"),
    10015: (404, "Unknown Webhook"),
    10062: (404, "Unknown interaction"),
    10063: (404, "Unknown application command"),
    30032: (400, "Maximum number of application commands reached (100)."),
    30034: (400, "Max number of daily application command creates has been reached (200)."),
    30046: (429, "Maximum number of edits to messages older than 1 hour reached. Try again later."),
    40005: (413, "Request entity too large"),
    40060: (400, "Interaction has already been acknowledged."),
    50001: (403, "Missing Access"),
    50005: (403, "Cannot edit a message authored by another user"),
    50006: (400, "Cannot send an empty message"),
    50007: (403, "Cannot send messages to this user"),
    50008: (400, "Cannot send messages in a non-text channel"),
    50013: (403, "Missing Permissions"),
    50024: (400, "Cannot execute action on this channel type"),
    50027: (401, "Invalid Webhook Token"),
    50083: (400, "Thread is archived"),
    50109: (400, "The request body contains invalid JSON."),
    160002: (400, "Cannot reply without permission to read message history"),
    160004: (400, "A thread has already been created for this message"),
    160005: (400, "Thread is locked"),
    160006: (400, "Maximum number of active threads reached"),
}


class DiscordError(Exception):
    """An answer with an error; `extra` stands beside the code and the message."""

    def __init__(self, code: int, **extra: Any) -> None:
        status, message = (400, "Invalid Form Body") if code == 50035 else REFUSALS[code]
        super().__init__(message)
        self.code = code
        self.status = status
        self.body: JSON = {"message": message, "code": code, **extra}


def invalid(field: str, code: str, message: str) -> DiscordError:
    """Say what is wrong with a field of the body; `field` may be a path with dots."""
    errors: JSON = {"_errors": [{"code": code, "message": message}]}
    for name in reversed(field.split(".")):
        errors = {name: errors}
    return DiscordError(50035, errors=errors)


def too_long(field: str, most: int, least: int = 0) -> DiscordError:
    """Say that a text has the wrong length."""
    if least:
        return invalid(field, "BASE_TYPE_BAD_LENGTH", f"Must be between {least} and {most} in length.")
    return invalid(field, "BASE_TYPE_MAX_LENGTH", f"Must be {most} or fewer in length.")
