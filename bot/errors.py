"""What can go wrong between a person and an answer; every message says what to do about it.

BotError
├── SettingsError    settings that cannot be used; the message lists every one of them
├── AnswerFailed     the agent ended without an answer
└── RefreshStopped   somebody stopped a refresh before it was done
"""


class BotError(Exception):
    """The root of all errors of this package; its text is a sentence for the person who asked."""


class SettingsError(BotError):
    """The environment or citebot.toml holds values that cannot be used."""


class AnswerFailed(BotError):
    """The agent ended without an answer."""


class RefreshStopped(BotError):
    """A refresh was stopped; what was indexed before goes on serving."""


def unexpected(error: Exception) -> str:
    """Say that something went wrong that no part of citebot knows about."""
    reason = f"{type(error).__name__}: {error}".rstrip(": ")
    return (
        f"Something went wrong that should not ({reason}). Try again; if it stays, `citebot index --full` "
        "makes the index anew, and --debug shows where it happened."
    )
