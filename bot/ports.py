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
        """Return whether the index is at HEAD."""

    async def refresh(self, *, full: bool = False, progress: Callable[[Progress], None] | None = None) -> RefreshReport:
        """Index HEAD. `progress` is called from another thread; an exception from it stops the refresh."""

    async def pin(self) -> CodeSearch:
        """Pin the newest indexed commit; `NotIndexed` before there is one."""

    async def status(self) -> IndexStatus:
        """Describe the index."""

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
        """The address of the repository's page at its host; empty if unknown."""

    async def find(self, written: str, kind: RefKind | None = None) -> NamedRef | None:
        """Find the meaning of a name; None if the repository has nothing of that name and kind."""

    async def suggest(self, written: str) -> Sequence[str]:
        """Suggest the names most similar to a missing one."""

    async def pin(self, ref: NamedRef, progress: Callable[[Progress], None] | None = None) -> CodeSearch:
        """Pin the code at a ref, indexing it first if necessary; `progress` is called from another thread.

        `UnknownRevision` if the ref disappeared meanwhile.
        """

    async def read_file(self, commit: str, path: str) -> Sequence[str] | None:
        """Read the lines of a file at a commit; None if the commit or the file is missing."""

    async def list_kept(self) -> Sequence[NamedRef]:
        """List the other branches whose newest commits are always indexed."""

    async def refresh_kept(self) -> Sequence[NamedRef]:
        """Index the newest commits of these branches, and return them; raises the first `IndexerError` at the end."""

    async def sweep(self) -> None:
        """Delete the least recently used."""


class Repositories(Protocol):
    """The repositories available for questions, by name; the first is the default."""

    def list_names(self) -> Sequence[str]:
        """Return all names."""

    async def status(self, name: str) -> IndexStatus:
        """Describe the index of a repository."""

    async def drift(self, name: str, commit: str, paths: Sequence[str]) -> Drift:
        """Return the commits of a repository since one, and which of the paths they changed."""

    async def refresh(
        self, name: str, *, full: bool = False, progress: Callable[[Progress], None] | None = None
    ) -> RefreshReport:
        """Index the newest commit of a repository; `progress` is called in the event loop."""

    async def pin_existing(self, name: str) -> CodeSearch:
        """Pin the existing index of a repository, and start nothing; `NotIndexed` if there is none."""


class AnswerJobs(Protocol):
    """Requested answers, each a job for any worker; methods raise `InboxError`.

    A job may be carried out twice, and one of a finished message means nothing: workers ask the
    inbox.
    """

    async def ask_for_answer(self, entry_id: int, conversation: str, *, is_command: bool = False) -> None:
        """Request the answer to a message, after earlier requests of its conversation; a command waits for none.

        A waiting message is not requested twice; one in progress is, and runs once more.
        """

    def work_on_answers(
        self, answer: Callable[[int], Awaitable[None]], *, at_once: int | None = None
    ) -> AbstractAsyncContextManager[None]:
        """Call `answer` with entries while the context is open, `at_once` of them at a time.

        At the end, those in progress are cancelled, and wait for the next worker like the rest.
        """


RefreshCourse = AsyncIterator[Progress | RefreshReport]
RefreshWork = Callable[[str, bool, Callable[[Progress], None]], Awaitable[RefreshReport]]


class RefreshJobs(Protocol):
    """Requested refreshes: one at a time per repository, with at most one more waiting."""

    async def ask_for_refresh(self, repository: str, *, full: bool = False, join: bool = False) -> RefreshCourse:
        """Request a refresh of a repository, and return its course, which the caller may follow.

        The refresh begins after the call, so that no push is lost; requests until then share it,
        and it is full if one of them asks for that. With `join`, one in progress is enough, if it
        is as full as requested. The course yields the progress from now on, some of which may be
        missing, and at last the report; it raises the `IndexerError` of a failed refresh.
        """

    async def join_refresh(self, repository: str) -> RefreshCourse | None:
        """Return the course of the waiting or running refresh; None if there is none."""

    def work_on_refreshes(
        self, refresh: RefreshWork, *, at_once: int | None = None
    ) -> AbstractAsyncContextManager[None]:
        """Call `refresh` with a repository, whether it is full, and a callback for progress, from any thread.

        At the end, a refresh in progress is cancelled, and waits for the next worker, like all others in the queue.
        """


class Answerer(Protocol):
    """The agent's interface for conversations: named runs that can be resumed or stopped."""

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
        """Stream the events on the way to an answer from all of the repositories; the last one carries it.

        Raises `CheckpointOvertaken` if another process continues the conversation, or the permit
        says no.
        """

    def resume(
        self, run_id: str, *, thread: str, reply: str | None = None, permit: RunPermit | None = None
    ) -> AsyncIterator[AgentEvent]:
        """Continue an interrupted run; `UnknownRun` if there is none, and the question may be asked."""

    async def stop(self, run_id: str) -> bool:
        """End a run within two seconds; False if it is not in progress."""

    async def forget(self, thread: str, *, run_id: str | None = None) -> None:
        """Forget the conversation of the thread; with a run, only if that is its newest."""

    async def remember(self, question: str, answer: Answer, *, thread: str, run_id: str) -> None:
        """Record the result of a goal run as a turn of the conversation; recording a run again changes nothing."""


class GoalRuns(Protocol):
    """Works towards goals in repositories, each run in a separate thread."""

    async def propose(self, request: GoalRequest) -> GoalProposal:
        """Describe a possible run; nothing runs. Raises `AgentError` if it cannot succeed."""

    def start(self, proposal: GoalProposal, *, thread: str, run_id: str | None = None) -> AsyncIterator[AgentEvent]:
        """Start an approved proposal; before the last event, the answer, `goal_end` has the verdict."""

    def resume(self, run_id: str, *, thread: str, reply: str | None = None) -> AsyncIterator[AgentEvent]:
        """Continue a run that was interrupted or waits for a person; `UnknownRun` if there is none."""

    async def stop(self, run_id: str) -> bool:
        """End a run within two seconds; False if it is not in progress."""

    async def forget(self, thread: str) -> None:
        """Forget a run that is over."""


class ChatPlatform(Protocol):
    """One chat platform's interface for replies. All methods raise only `ChatError`s."""

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the platform."""

    async def post(self, place: Place, content: MessageContent, *, nonce: str) -> MessageHandle:
        """Send a message. `nonce` (at most 25 characters) lets `find` recognize it."""

    async def edit(self, handle: MessageHandle, content: MessageContent) -> None:
        """Replace all of a message; first close a stream left open in it."""

    async def withdraw(self, handle: MessageHandle) -> None:
        """Delete a message; a missing one is no error. `EditRefused` if that is not allowed."""

    async def find_reply(self, place: Place, nonce: str) -> MessageHandle | None:
        """Find the message sent with a nonce, after a crash or an unanswered call."""

    async def open_stream(self, place: Place, content: MessageContent, *, nonce: str) -> LiveStream:
        """Begin a streamed message; `StreamRefused` if the workspace has none."""

    async def read_thread(self, place: Place, *, before: str, limit: int) -> Sequence[ThreadMessage]:
        """Read the newest messages of a thread before the one named, oldest first."""

    async def read_file(self, file: AttachedFile, *, most: int) -> bytes:
        """Download an attached file; `FileUnreadable` if that is refused, or the file is too large."""

    async def hint(self, place: Place, status: str) -> None:
        """Show by a typing or status indicator that work is in progress. Empty: it is over."""


class LiveStream(Protocol):
    """A message on a platform that takes text piece by piece. `StreamGone` means that the piece did not arrive."""

    @property
    def handle(self) -> MessageHandle:
        """The message."""

    async def append(self, text: str, content: MessageContent) -> None:
        """Add text, which may be empty; of the content, only the status and the places found are shown."""

    async def finish(self, text: str, content: MessageContent) -> None:
        """Add the last text and end the stream; of the content, only footer and buttons are shown."""
