"""What conversations need of other parts: indexes, the agent, and the platforms that replies are shown on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from agent import AgentEvent, CodeSearch
from bot.messages import Capabilities, MessageContent, MessageHandle, Place, ThreadMessage
from indexer import Drift, IndexStatus, Progress, RefreshReport


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

    def ask(self, question: str, *, thread: str, repository: str | None = None) -> AsyncIterator[AgentEvent]:
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
        self, question: str, *, thread: str, repository: str | None = None, run_id: str | None = None
    ) -> AsyncIterator[AgentEvent]:
        """Stream what happens on the way to an answer; the last event carries the `Answer`."""

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
