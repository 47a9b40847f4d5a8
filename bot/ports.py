"""The ports of conversations: indexes, the agent, storage, and the platforms of replies."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from indexer import Drift, IndexStatus, NamedRef, Progress, RefKind, RefreshReport

if TYPE_CHECKING:  # most questions of the command line need no database
    from agent import AgentEvent, Answer, Attachments, CodeSearch, GoalProposal, GoalRequest, RunPermit
    from bot.messages import (
        AttachedFile,
        Capabilities,
        MessageContent,
        MessageHandle,
        Place,
        ThreadMessage,
    )


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
        """Return the commits since one, and which of the paths they changed."""

    async def sweep(self) -> None:
        """Delete unused data; `StorageLocked` while a refresh is in progress."""


class RefSource(Protocol):
    """The branches, tags, commits and pull requests of one repository, and the code at each."""

    @property
    def problem(self) -> str:
        """The problem of the kept branches, as a sentence; empty if there is none."""

    @property
    def page(self) -> str:
        """The address of the repository's page at its host; empty if that is not known."""

    async def find(self, written: str, kind: RefKind | None = None) -> NamedRef | None:
        """Find what a name means; None if the repository has nothing of that name and kind."""

    async def suggest(self, written: str) -> Sequence[str]:
        """Name what is called most like something that there is not."""

    async def pin(self, ref: NamedRef, progress: Callable[[Progress], None] | None = None) -> CodeSearch:
        """Hold the code at a ref, which is indexed first where it was not; `progress` is called from another thread.

        `UnknownRevision` where the ref is gone meanwhile.
        """

    async def read_file(self, commit: str, path: str) -> Sequence[str] | None:
        """Read the lines of a file at a commit; None if the commit is not here, or has no such file."""

    async def list_kept(self) -> Sequence[NamedRef]:
        """List the branches beside the followed one whose newest commits are always indexed."""

    async def refresh_kept(self) -> Sequence[NamedRef]:
        """Index the newest commits of these branches, and return them; raises the first `IndexerError` at the end."""

    async def sweep(self) -> None:
        """Delete what was used least."""


class Repositories(Protocol):
    """The repositories that can be asked about, by name; the first is the default."""

    def list_names(self) -> Sequence[str]:
        """Name them all."""

    async def status(self, name: str) -> IndexStatus:
        """Describe what is indexed of a repository."""

    async def drift(self, name: str, commit: str, paths: Sequence[str]) -> Drift:
        """Return the commits of a repository since one, and which of the paths they changed."""

    async def refresh(
        self, name: str, *, full: bool = False, progress: Callable[[Progress], None] | None = None
    ) -> RefreshReport:
        """Index the newest commit of a repository; `progress` is called in the event loop."""

    async def pin_existing(self, name: str) -> CodeSearch:
        """Hold what is indexed of a repository by now, and begin nothing; `NotIndexed` if that is nothing."""


class AnswerJobs(Protocol):
    """Answers that were asked for, each a job of whichever process works on them; methods raise `InboxError`.

    A job may be carried out twice, and one of a message that is over means nothing: who works on it asks the inbox.
    """

    async def ask_for_answer(self, entry_id: int, conversation: str, *, is_command: bool = False) -> None:
        """Request the answer to a message, after earlier requests of its conversation; a command waits for none.

        A waiting message is not requested twice; one in progress is, and runs once more.
        """

    def work_on_answers(
        self, answer: Callable[[int], Awaitable[None]], *, at_once: int | None = None
    ) -> AbstractAsyncContextManager[None]:
        """Call `answer` with one entry after the other while the context is open, `at_once` of them at most.

        At the end, what is in progress is cancelled, and waits for the next worker, like all that was not begun.
        """


RefreshCourse = AsyncIterator[Progress | RefreshReport]
RefreshWork = Callable[[str, bool, Callable[[Progress], None]], Awaitable[RefreshReport]]


class RefreshJobs(Protocol):
    """Refreshes that were asked for: of a repository one at a time, and one more at most waits."""

    async def ask_for_refresh(self, repository: str, *, full: bool = False, join: bool = False) -> RefreshCourse:
        """Request a refresh of a repository, and return its course, which the caller may follow.

        The refresh begins after the call, so that no push is lost; requests until then share it, and it is full if one
        of them wants that. With `join`, one in progress is enough, if it is as full as requested. The course yields the
        progress from now on, some of which may be missing, and at last the report; it raises the `IndexerError` of a
        failed refresh.
        """

    async def join_refresh(self, repository: str) -> RefreshCourse | None:
        """Return the course of the refresh that waits or is in progress; None if there is none."""

    def work_on_refreshes(
        self, refresh: RefreshWork, *, at_once: int | None = None
    ) -> AbstractAsyncContextManager[None]:
        """Call `refresh` with a repository, whether it is full, and a callback for progress, from any thread.

        At the end, a refresh in progress is cancelled, and waits for the next worker, like all others in the queue.
        """


class Answerer(Protocol):
    """The agent as conversations need it: runs that have names, and can be taken up again or stopped."""

    def ask(
        self,
        question: str,
        *,
        thread: str,
        repositories: Sequence[str] = (),
        run_id: str | None = None,
        permit: RunPermit | None = None,
        attachments: Attachments = ...,
    ) -> AsyncIterator[AgentEvent]:
        """Stream what happens on the way to an answer from all of the repositories; the last event carries it.

        Raises `CheckpointOvertaken` if another process continues the conversation, or the permit says no.
        """

    def resume(
        self, run_id: str, *, thread: str, reply: str | None = None, permit: RunPermit | None = None
    ) -> AsyncIterator[AgentEvent]:
        """Continue a run that was interrupted; `UnknownRun` if there is none, and the question may be asked."""

    async def stop(self, run_id: str) -> bool:
        """End a run within two seconds; False if it is not in progress."""

    async def forget(self, thread: str, *, run_id: str | None = None) -> None:
        """Forget the conversation of the thread; with a run, only where that is its newest."""

    async def remember(self, question: str, answer: Answer, *, thread: str, run_id: str) -> None:
        """Remember as a turn of the conversation what a goal run has said there; the same run once."""


class GoalRuns(Protocol):
    """Works towards goals in repositories, each run in a thread of its own."""

    async def propose(self, request: GoalRequest) -> GoalProposal:
        """Describe a possible run; nothing runs. Raises `AgentError` if it cannot succeed."""

    def start(self, proposal: GoalProposal, *, thread: str, run_id: str | None = None) -> AsyncIterator[AgentEvent]:
        """Begin what was proposed and approved; before the last event, the answer, `goal_end` has the verdict."""

    def resume(self, run_id: str, *, thread: str, reply: str | None = None) -> AsyncIterator[AgentEvent]:
        """Continue a run that was interrupted or waits for a person; `UnknownRun` if there is none."""

    async def stop(self, run_id: str) -> bool:
        """End a run within two seconds; False if it is not in progress."""

    async def forget(self, thread: str) -> None:
        """Forget a run that is over."""


class ChatPlatform(Protocol):
    """One chat platform, as replies see it. All methods raise `ChatError`s and nothing else."""

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the platform."""

    async def post(self, place: Place, content: MessageContent, *, nonce: str) -> MessageHandle:
        """Send a message. `nonce` (at most 25 characters) goes with it, so that `find` can tell that it was sent."""

    async def edit(self, handle: MessageHandle, content: MessageContent) -> None:
        """Change all of a message; a stream that was left open in it is closed first."""

    async def withdraw(self, handle: MessageHandle) -> None:
        """Delete a message; one that is gone already is no error. `EditRefused` if that is not allowed."""

    async def find_reply(self, place: Place, nonce: str) -> MessageHandle | None:
        """Find the message that was sent with a nonce; asked after a crash, or where a call got no answer."""

    async def open_stream(self, place: Place, content: MessageContent, *, nonce: str) -> LiveStream:
        """Begin a message that text can be added to; `StreamRefused` if it does not exist."""

    async def read_thread(self, place: Place, *, before: str, limit: int) -> Sequence[ThreadMessage]:
        """Read the newest messages of a thread before the one named, oldest first."""

    async def read_file(self, file: AttachedFile, *, most: int) -> bytes:
        """Fetch a file that came with a message; `FileUnreadable` if that is refused, or it has more bytes."""

    async def hint(self, place: Place, status: str) -> None:
        """Show that work is in progress in some way that is no message: typing, a status. Empty: it is over."""


class LiveStream(Protocol):
    """A message on a platform that takes text piece by piece. `StreamGone` means that the piece did not arrive."""

    @property
    def handle(self) -> MessageHandle:
        """The message."""

    async def append(self, text: str, content: MessageContent) -> None:
        """Add text, which may be empty; of the content only the status and the places found are shown."""

    async def finish(self, text: str, content: MessageContent) -> None:
        """Add the last text and end the stream; of the content only footer and buttons are shown."""
