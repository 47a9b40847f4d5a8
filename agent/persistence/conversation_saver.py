"""Conversations in one database: a row and the evidence of each, and LangGraph's own checkpointer for each run."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from agent.persistence.database import Statement
from agent.persistence.evidence_store import RunClaim, RunStore, name_unclaimed, split_checkpoints

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

_UUID_EPOCH = 0x01B2_1DD2_1381_4000  # 1970 in what a UUID counts: tenths of a microsecond since 1582
_DAMAGED = 1 << 59  # after the year 3400: what is counted on from there soon fits no UUID


def make_checkpoint_id(at: float) -> str:
    """Return LangGraph's id prefix for a time."""
    ticks = int(at * 10_000_000) + _UUID_EPOCH
    return f"{ticks >> 28:08x}-{ticks >> 12 & 0xFFFF:04x}-6{ticks & 0xFFF:03x}"


def make_serializer() -> JsonPlusSerializer:
    """Return a serializer that reads only plain values and messages.

    A database may come from a backup, and LangGraph would by default call any function that a checkpoint names.
    """
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    return JsonPlusSerializer(allowed_msgpack_modules=None)


def locate_checkpoints(checkpoints: str) -> RunnableConfig:
    """Name a checkpoint thread to a checkpointer."""
    return {"configurable": {"thread_id": checkpoints, "checkpoint_ns": ""}}


class ConversationSaver(RunStore):
    """Conversations of people; every method raises `CheckpointError`.

    In LangGraph's checkpointers the last write wins, so each claim has its own checkpoint thread, forked from the one
    before; the row of the conversation names the current one, and only the newest claim changes that.
    """

    @abstractmethod
    def open_checkpoints(self) -> AbstractAsyncContextManager[BaseCheckpointSaver[Any]]:
        """Open a checkpointer for one run, which leaves nothing unfinished for the next."""

    async def claim_run(self, thread: str, *, after: RunClaim | None = None) -> RunClaim:
        """Claim a conversation for a run, which continues in a separate checkpoint thread."""
        claim, superseded = await self.take(thread, after)
        async with self.open_checkpoints() as checkpoints:
            forked = await fork_checkpoint(checkpoints, superseded, checkpoints, claim.checkpoints)
        point = "UPDATE conversations SET checkpoints = ?, commits = coalesce(commits, ?) WHERE thread = ?"
        values = (claim.checkpoints, _read_earlier_commits(forked), thread)
        await self.write_all([(point, values), *self.make_deletions(superseded)], claim=claim)
        return claim

    async def find_newest(self, thread: str) -> tuple[str, Mapping[str, str]]:
        """Find the checkpoint thread of a conversation, and its run's commit of each repository.

        Earlier versions used the conversation's own name for its checkpoint thread, and kept the
        commits in the checkpoint.
        """
        asked = "(SELECT CAST(? AS TEXT) AS name) AS asked"
        query = f"SELECT name, checkpoints, commits FROM {asked} LEFT JOIN conversations ON thread = name"  # noqa: S608 - constants
        ((name, checkpoints, commits),) = await self.rows(query, (thread,))
        return checkpoints or name_unclaimed(name), json.loads(commits or "{}")

    async def note_commits(self, claim: RunClaim, commits: Mapping[str, str]) -> None:
        """Record the commits that a run reads; raises `CheckpointOvertaken` for one that has lost its conversation."""
        note = "UPDATE conversations SET commits = ? WHERE thread = ?"
        await self.write_all([(note, (json.dumps(dict(commits)), claim.thread))], claim=claim)

    async def forget(self, thread: str, claim: RunClaim | None = None) -> None:
        """Delete everything stored for a conversation, but only under its claim if there is one."""
        numbered = f"{thread}#"
        within = "SELECT DISTINCT thread_id FROM checkpoints WHERE thread_id = ? OR substr(thread_id, 1, ?) = ?"
        found = await self.rows(within, (thread, len(numbered), numbered))
        # Without the row nothing is kept under an earlier claim.
        rows = ("conversations", "evidence")
        deletions: list[Statement] = [(f"DELETE FROM {table} WHERE thread = ?", (thread,)) for table in rows]  # noqa: S608 - constants
        for (name,) in found:
            if split_checkpoints(name)[0] == thread:
                deletions += self.make_deletions(name)
        await self.write_all(deletions, claim=claim)


async def list_threads(saver: ConversationSaver) -> list[str]:
    """Return all stored conversations, those of earlier versions included."""
    claimed = {thread for (thread,) in await saver.rows("SELECT thread FROM conversations")}
    unclaimed = await saver.rows("SELECT thread_id FROM checkpoints UNION SELECT thread FROM evidence")
    return sorted(claimed | {name for (name,) in unclaimed if split_checkpoints(name)[0] not in claimed})


async def fork_checkpoint(
    source: BaseCheckpointSaver[Any], origin: str, target: BaseCheckpointSaver[Any], copy: str
) -> CheckpointTuple | None:
    """Copy the newest checkpoint of a thread with its tasks' writes, so a paused run waits there too.

    Returns the copy, if there was one.
    """
    found = await source.aget_tuple(locate_checkpoints(origin))
    if found is None:
        return None
    continue_ids(found.checkpoint["id"])
    versions = found.checkpoint["channel_versions"]  # each as new, or Postgres would not take the values
    config = await target.aput(locate_checkpoints(copy), found.checkpoint, found.metadata, versions)
    written: dict[str, list[tuple[str, Any]]] = {}
    for task, channel, value in found.pending_writes or ():
        written.setdefault(task, []).append((channel, value))
    for task, writes in written.items():
        await target.aput_writes(config, writes, task)
    return found


def _read_earlier_commits(found: CheckpointTuple | None) -> str | None:
    """Return the commits of a run as earlier versions stored them, in the checkpoint."""
    values = found.checkpoint["channel_values"] if found is not None else {}
    if "commit" not in values:
        return None
    return json.dumps(values.get("commits") or {values.get("repository", ""): values["commit"]})


def continue_ids(known: str) -> None:
    """Make the next ids of this process sort after one read from a process with a possibly fast clock.

    LangGraph takes an id from the clock, or counts on from its last id if the clock has not
    advanced. An id that was read counts as its last one here. There is no public way: a fork under
    a new id would lose the writes of its tasks, whose ids derive from it; and the graph treats a
    checkpoint named by its id as history, for which a pending reply does not count.
    """
    from langgraph.checkpoint.base import id as library  # takes a second

    try:
        value = UUID(known).int
    except ValueError:  # which LangGraph has not made, and nothing is counted on from
        return
    ticks = value >> 80 << 12 | value >> 64 & 0xFFF
    generator = cast("Any", library)
    last = generator._last_v6_timestamp or 0  # noqa: SLF001 - nothing public can be given the time
    if last < ticks < _DAMAGED:
        generator._last_v6_timestamp = ticks  # noqa: SLF001
