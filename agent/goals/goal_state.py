"""The state of a goal run's graph: plain values, because every step is checkpointed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, TypedDict

from agent.errors import WorkspaceTooLarge
from agent.sandbox.patch import FileChange, FileVersion
from agent.state import merge_messages

MAX_MESSAGES = 40
MAX_CHANGED_BYTES = 2_000_000  # of all files that a run has changed


class PendingCall(TypedDict):
    """A call of a tool that the model has asked for; the arguments are as it wrote them, and not yet checked."""

    id: str
    name: str
    args: dict[str, Any]


class GoalToolResult(TypedDict):
    """A call that was made; its text is in the evidence table under `key`."""

    tool: str
    ok: bool
    key: str


class StoredChange(TypedDict):
    """A file that is not as it is at the commit; each side is its mode and content, None where there is no file."""

    path: bytes
    old: list[Any] | None
    new: list[Any] | None


class GoalUsage(TypedDict):
    """What a run has spent on models so far."""

    calls: int
    input_tokens: int
    output_tokens: int


class GoalState(TypedDict, total=False):
    """The channels of the graph."""

    run_id: str
    repository: str
    commit: str
    goal: str  # the name of its kind
    arguments: dict[str, Any]
    task: str  # what the person wants, in their words
    model_name: str
    hitl: bool  # whether a person is asked after every iteration
    approved: list[str]  # the tools that the approval of the run covers
    nonce: str  # of the tags around data in the prompts

    messages: Annotated[list[Any], merge_messages]  # of LangChain
    pending_tool_calls: list[PendingCall]
    tool_results: list[GoalToolResult]  # of the last iteration
    iteration: int
    max_iterations: int
    usage: GoalUsage

    changes: list[StoredChange]  # the working copy, as far as it differs from the commit
    checked: str  # which changes the last check was made with
    idle: int  # how many replies in a row have called nothing
    goal_achieved: bool
    goal_reason: str
    goal_details: dict[str, Any]

    commands: list[str]  # everything that was run, oldest first
    ended_by: str  # why the run ends though the goal is not reached; empty while it runs
    is_aborted: bool


def store_changes(changes: Iterable[FileChange]) -> list[StoredChange]:
    """Write changes as the state holds them; `WorkspaceTooLarge` where they are more than it should."""
    stored: list[StoredChange] = [
        {"path": one.path, "old": _store_version(one.old), "new": _store_version(one.new)} for one in changes
    ]
    size = sum(len(side[1]) for one in stored for side in (one["old"], one["new"]) if side is not None)
    if size > MAX_CHANGED_BYTES:
        largest = max(stored, key=lambda one: len(one["new"][1]) if one["new"] else 0)
        raise WorkspaceTooLarge(
            f"The changed files hold {size:,} bytes, and may hold {MAX_CHANGED_BYTES:,}. Remove what was only "
            f"generated; the largest is {largest['path'].decode(errors='replace')[:200]}."
        )
    return stored


def hash_changes(changes: Sequence[StoredChange]) -> str:
    """Name a set of changes, so that what was checked is not checked again."""
    return hashlib.blake2b(repr(list(changes)).encode(), digest_size=12).hexdigest()


def read_stored_changes(stored: Sequence[StoredChange]) -> list[FileChange]:
    """Return the changes that a state holds."""
    return [
        FileChange(path=one["path"], old=_read_version(one["old"]), new=_read_version(one["new"])) for one in stored
    ]


def _store_version(version: FileVersion | None) -> list[Any] | None:
    return [version.mode, version.content] if version is not None else None


def _read_version(stored: Sequence[Any] | None) -> FileVersion | None:
    return FileVersion(mode=stored[0], content=stored[1]) if stored is not None else None
