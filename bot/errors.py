"""The errors between a person and an answer; every message says what to do about it.

BotError
├── SettingsError    settings that cannot be used; the message lists every one of them
├── AnswerFailed     the agent ended without an answer
├── GoalRunUnavailable no goal run of the terminal can be resumed
├── NothingToDraw    there is no picture of what somebody wants drawn; says why
├── RefreshStopped   somebody stopped a refresh before it was done
├── BadQuestion      what somebody asked is no question: empty, or too long
├── NotAllowed       somebody may not do what they asked for
│   ├── UnknownRepository there is none of that name that they may ask about
│   ├── UnknownGoalRun   there is none of that name that they may see
│   ├── NotProposed      what they decide about is not what is proposed now
│   └── LimitReached     they have asked too much for now; says when to come back
│       └── SilentlyThrottled they continue after many refusals: there is no reply any more
├── InboxError       the database of messages cannot be used
│   └── MessageLost  another process has the message now
├── FolderError      the data folder belongs to somebody else
├── BackupError      the data folder cannot be saved, or not be restored; it is as it was
├── MigrationError   the data folder cannot be moved to Postgres, or back; both are as they were
└── ChatError        a platform did not do what it was asked to
    ├── RateLimited      too many calls; says when to come back
    ├── PlatformUnreachable no answer; what was asked may have happened
    ├── PostRefused      nothing can be posted in that place
    ├── EditRefused      the message can no longer be changed
    ├── MessageTooLong   more text than a message takes
    ├── FileUnreadable   an attached file cannot be fetched
    ├── StreamRefused    the workspace has no streaming
    └── StreamGone       the stream has ended; what was sent last did not arrive
        └── StreamStopped    a person stopped it
"""

# The text for a turn that exceeded its time.
TOO_LATE = "This took too long, so I stopped. Ask for something narrower, or try again."


class BotError(Exception):
    """The root of all errors of this package; its text is a sentence for the person who asked."""


class SettingsError(BotError):
    """The environment or citebot.toml has invalid values."""


class AnswerFailed(BotError):
    """The agent ended without an answer."""


class GoalRunUnavailable(BotError):
    """The terminal has no such goal run to continue, or another process has it."""


class NothingToDraw(BotError):
    """There is nothing to draw for a request."""


class RefreshStopped(BotError):
    """A refresh was stopped; the previous index is still served."""


class BadQuestion(BotError):
    """A question cannot be answered because it is empty or too long."""


class NotAllowed(BotError):
    """A person may not do this."""


class OutsidersPresent(NotAllowed):
    """People outside the organization would read the answer; the author is told privately, once a day."""


class UnknownRepository(NotAllowed):
    """The repository does not exist, or the person may not ask about it; the error does not reveal which."""


class UnknownGoalRun(NotAllowed):
    """The goal run does not exist, or the person may not see it; the error does not reveal which."""


class NotProposed(NotAllowed):
    """A proposal was decided already, or has changed since the person saw it."""


class LimitReached(NotAllowed):
    """A person has reached a limit, and may ask again after `retry_after` seconds."""

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class SilentlyThrottled(LimitReached):
    """Somebody keeps asking after repeated refusals; each reply would keep others waiting."""


class InboxError(BotError):
    """The database of messages cannot be used; unstored messages must not be acknowledged."""


class MessageLost(InboxError):
    """Another process has the message now, or it was edited: this process must not reply."""


class FolderError(BotError):
    """The data folder belongs to another user, and cannot be trusted."""


class BackupError(BotError):
    """The data folder cannot be saved or restored; it is unchanged."""


class MigrationError(BotError):
    """The data folder cannot be moved to Postgres, or back; the source is unchanged."""


class ChatError(BotError):
    """A platform did not carry out a request."""


class RateLimited(ChatError):
    """There were too many calls; the next one may follow after `retry_after` seconds."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"The platform asks to wait {retry_after:g} seconds.")
        self.retry_after = retry_after


class PlatformUnreachable(ChatError):
    """The platform did not answer; the request may have succeeded all the same."""


class PostRefused(ChatError):
    """Nothing can be posted in that place: not a member, no permission, archived."""


class EditRefused(ChatError):
    """The message can no longer be changed: it is gone, too old, or edits are not allowed."""


class MessageTooLong(ChatError):
    """The message is longer than the platform allows."""


class FileUnreadable(ChatError):
    """An attached file cannot be fetched: it is gone, too large, or not for the bot."""


class StreamRefused(ChatError):
    """The workspace has no streaming, now or ever."""


class StreamGone(ChatError):
    """The stream has ended; the last text sent did not arrive."""


class StreamStopped(StreamGone):
    """A person stopped the stream."""


def describe_unexpected(error: Exception) -> str:
    """Describe an unexpected error."""
    reason = f"{type(error).__name__}: {error}".rstrip(": ")
    return (
        f"An internal error occurred ({reason}). Try again; if it persists, `citebot index --full` "
        "rebuilds the index, and --debug shows where it happened."
    )
