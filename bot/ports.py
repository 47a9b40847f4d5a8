"""What conversations need of other parts: indexes, the agent, what is stored, and the platforms of replies."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from agent import AgentEvent, CodeSearch
from bot.messages import (
    Capabilities,
    IncomingMessage,
    MessageContent,
    MessageHandle,
    Place,
    ThreadMessage,
)
from indexer import Drift, IndexStatus, Progress, RefreshReport

if TYPE_CHECKING:  # most questions of the command line need no database
    from bot.storage.threads import ThreadState
    from bot.storage.turn_records import FeedbackEntry, Opinion, TurnRecord


class RepositoryIndex(Protocol):
    """The index of one repository."""

    async def is_current(self) -> bool:
        """Return whether HEAD is the commit that is indexed."""

    async def refresh(self, *, full: bool = False, progress: Callable[[Progress], None] | None = None) -> RefreshReport:
        """Index HEAD. `progress` is called from another thread; what it raises stops the refresh."""

    async def pin(self) -> CodeSearch:
        """Hold the newest indexed commit; `NotIndexed` before there is one."""

    async def status(self) -> IndexStatus:
        """Describe what is indexed."""

    async def drift(self, commit: str, paths: Sequence[str]) -> Drift:
        """What happened since a commit, and to which of the paths."""

    async def sweep(self) -> None:
        """Drop what nobody reads any more; `StorageLocked` while a refresh is under way."""


class Assistant(Protocol):
    """Answers questions, and remembers the conversation of a thread."""

    def ask(self, question: str, *, thread: str, repositories: Sequence[str] = ()) -> AsyncIterator[AgentEvent]:
        """Stream what happens on the way to an answer; the last event carries the `Answer`."""

    async def forget(self, thread: str) -> None:
        """Forget the conversation of the thread."""


class Repositories(Protocol):
    """The repositories that can be asked about, by name; the first is the default."""

    def list_names(self) -> Sequence[str]:
        """Name them all."""

    async def status(self, name: str) -> IndexStatus:
        """Describe what is indexed of a repository."""

    async def drift(self, name: str, commit: str, paths: Sequence[str]) -> Drift:
        """What happened in a repository since a commit, and to which of the paths."""

    async def refresh(
        self, name: str, *, full: bool = False, progress: Callable[[Progress], None] | None = None
    ) -> RefreshReport:
        """Index the newest commit of a repository; `progress` is called in the event loop."""

    async def pin_existing(self, name: str) -> CodeSearch:
        """Hold what is indexed of a repository by now, and begin nothing; `NotIndexed` where that is nothing."""


class Answerer(Protocol):
    """The agent as conversations need it: runs that have names, and can be taken up again or stopped."""

    def ask(
        self, question: str, *, thread: str, repositories: Sequence[str] = (), run_id: str | None = None
    ) -> AsyncIterator[AgentEvent]:
        """Stream what happens on the way to an answer from all of the repositories; the last event carries it."""

    def resume(self, run_id: str, reply: str | None = None) -> AsyncIterator[AgentEvent]:
        """Go on with a run that was broken off; `UnknownRun` where there is none."""

    async def stop(self, run_id: str) -> bool:
        """End a run within two seconds; False if it is not under way."""

    async def forget(self, thread: str) -> None:
        """Forget the conversation of the thread."""


class ChatPlatform(Protocol):
    """One chat platform, as replies see it. All methods raise `ChatError`s and nothing else."""

    @property
    def capabilities(self) -> Capabilities:
        """What the platform can do."""

    async def post(self, place: Place, content: MessageContent, *, nonce: str) -> MessageHandle:
        """Send a message. `nonce` (at most 25 characters) goes with it, so that `find` can tell that it was sent."""

    async def edit(self, handle: MessageHandle, content: MessageContent) -> None:
        """Change all of a message; a stream that was left open in it is closed first."""

    async def withdraw(self, handle: MessageHandle) -> None:
        """Delete a message; one that is gone already is no error. `EditRefused` where that is not allowed."""

    async def find_reply(self, place: Place, nonce: str) -> MessageHandle | None:
        """Find the message that was sent with a nonce; asked after a crash, or where a call got no answer."""

    async def open_stream(self, place: Place, content: MessageContent, *, nonce: str) -> LiveStream:
        """Begin a message that text can be added to; `StreamRefused` where there is no such thing."""

    async def read_thread(self, place: Place, *, before: str, limit: int) -> Sequence[ThreadMessage]:
        """Read the newest messages of a thread before the one named, oldest first."""

    async def hint(self, place: Place, status: str) -> None:
        """Show that work is under way in some way that is no message: typing, a status. Empty: it is over."""


class LiveStream(Protocol):
    """A message on a platform that takes text piece by piece. `StreamGone` means that the piece did not arrive."""

    @property
    def handle(self) -> MessageHandle:
        """The message."""

    async def append(self, text: str, content: MessageContent) -> None:
        """Add text, which may be empty; of the content only the status and the places found are shown."""

    async def finish(self, text: str, content: MessageContent) -> None:
        """Add the last text and end the stream; of the content only footer and buttons are shown."""


class ThreadMembership(Protocol):
    """Which threads citebot takes part in, and which conversation each belongs to."""

    async def should_answer(self, message: IncomingMessage) -> bool:
        """Whether a message is to be answered; notes who has written in a thread that citebot takes part in.

        A message that names nobody is, where citebot takes part, is not muted, and only the author has written lately.
        """

    async def enter(self, message: IncomingMessage) -> str:
        """Take part in the thread of a message to be answered; return the conversation that it belongs to.

        A direct message outside threads goes on with the conversation of the last one for half an hour.
        """

    async def leave(self, message: IncomingMessage) -> None:
        """Take part in the thread of a message no more."""

    async def find(self, place: Place) -> ThreadState | None:
        """Return a thread that is known."""

    async def forget_old(self, before: float) -> int:
        """Drop the threads in which citebot was last asked before a time, but not what a channel chose; count them."""


class ThreadSettings(Protocol):
    """What people have set for a thread, or for the channel that it is in."""

    async def mute(self, message: IncomingMessage, *, muted: bool) -> None:
        """Mute citebot in a thread until it is addressed by a command, or unmute it."""

    async def use(self, message: IncomingMessage, repository: str) -> None:
        """Ask about a repository from now on in this thread, or in this channel where it is no thread."""

    async def repository(self, message: IncomingMessage) -> str | None:
        """Return the repository in use in the thread of a message, else in its channel."""


class TurnRecords(Protocol):
    """How the answers of finished turns came about."""

    async def keep(self, run_id: str, conversation: str, record: TurnRecord) -> None:
        """Keep a turn; a run that was taken up again replaces what was kept of it."""

    async def last(self, conversation: str) -> TurnRecord | None:
        """Return the newest turn of a conversation."""

    async def last_run(self, conversation: str) -> str:
        """Name the run of the newest turn of a conversation; empty if none is kept."""

    async def forget(self, conversation: str) -> None:
        """Drop the turns of a conversation; opinions stay."""

    async def forget_old(self, before: float) -> int:
        """Drop the turns and the opinions of before a time; return how many opinions."""


class Ratings(Protocol):
    """What people thought of answers."""

    async def rate(self, run_id: str, person: str, opinion: Opinion) -> None:
        """Keep what a person thinks of an answer; a later opinion replaces the earlier one."""

    async def feedback(self, *, since: float = 0.0) -> Sequence[FeedbackEntry]:
        """Return the opinions given since a time, oldest first; their records as far as they are kept."""


class QuestionLimiter(Protocol):
    """Counts what each person asks, across restarts and processes."""

    async def count(self, message: IncomingMessage) -> None:
        """Count a question; raises `NotAllowed` for one too many, `SilentlyThrottled` after as many refusals again."""

    async def count_command(self, message: IncomingMessage) -> None:
        """Count a command; raises `SilentlyThrottled` at several times as many as questions may be asked."""

    async def forget_old(self) -> None:
        """Drop the counts of minutes and days that are over."""
