"""The checkpointer of every conversation database: it holds back checkpoints that cost nothing, and keeps the rest."""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, cast
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from agent.errors import CheckpointError
from agent.persistence.evidence_store import RunClaim, SqlExecutor, Statement

_UUID_EPOCH = 0x01B2_1DD2_1381_4000  # 1970 in what a UUID counts: tenths of a microsecond since 1582

_DAMAGED = 1 << 59  # after the year 3400: what is counted on from there soon fits no UUID
log = logging.getLogger(__name__)


def make_checkpoint_id(at: float) -> str:
    """Return the beginning of the ids that LangGraph gives at a time."""
    ticks = int(at * 10_000_000) + _UUID_EPOCH
    return f"{ticks >> 28:08x}-{ticks >> 12 & 0xFFFF:04x}-6{ticks & 0xFFF:03x}"


def continue_ids(known: str) -> None:
    """Let the next ids of this process sort after one that it has read, whose maker's clock may be ahead of ours.

    LangGraph takes an id from the clock, unless that has not gone on since its last one: then it counts on from there.
    What was read is taken for its last one here.
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


class StepCheckpoint(NamedTuple):
    """What a checkpointer is given at the end of a step; `new_versions` are those of the channels that changed."""

    config: RunnableConfig
    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    new_versions: ChannelVersions


class StepWrites(NamedTuple):
    """What a checkpointer is given of one task of a step, before the step is over."""

    config: RunnableConfig
    writes: Sequence[tuple[str, Any]]
    task_id: str
    task_path: str


class ConversationSaver(SqlExecutor, BaseCheckpointSaver[str]):
    """A checkpointer of LangGraph with the evidence beside it; every method raises `CheckpointError`."""

    side_tables: ClassVar[Sequence[str]]  # of the library, beside `checkpoints`; the first has the writes of tasks

    def __init__(self, *arguments: Any, **options: Any) -> None:
        # Nothing but plain values and messages is ever made of what is read: a database may come from a backup, and
        # LangGraph would by default call whatever a checkpoint names.
        super().__init__(*arguments, serde=JsonPlusSerializer(allowed_msgpack_modules=None), **options)
        self._held: dict[str, _Held] = {}

    @abstractmethod
    async def write_step(
        self, checkpoint: StepCheckpoint | None, writes: StepWrites | None = None, *, claim: RunClaim | None = None
    ) -> None:
        """Write a checkpoint and then the writes of a task, in one transaction, where the claim lets it."""

    @abstractmethod
    async def read_step(
        self, config: RunnableConfig, *, after: StepCheckpoint | None, claim: RunClaim | None = None
    ) -> CheckpointTuple | None:
        """Write a checkpoint, and read the newest of the thread, or the one named, in one transaction.

        The claim is for what is written.
        """

    @abstractmethod
    async def adelete_thread(self, thread_id: str, *, claim: RunClaim | None = None) -> None:
        """Delete a thread and everything in it, where the claim lets it; no run of before writes in it any more."""

    @abstractmethod
    async def prune_thread(self, thread_id: str, *more: Statement, claim: RunClaim | None = None) -> None:
        """Keep the newest checkpoint of a thread and drop the rest; only when no run of it is in progress.

        The statements in `more` run in the same transaction, where the claim lets it.
        """

    @abstractmethod
    async def shrink(self) -> None:
        """Give the space of what was deleted back, where the database does not do so by itself."""

    @asynccontextmanager
    async def defer_checkpoints(self, thread_id: str, claim: RunClaim | None = None) -> AsyncIterator[None]:
        """Hold the checkpoints of a thread back as long as repeating their steps would cost nothing.

        The newest is written after a step in which `flush_next` was called, when a person is asked, when a node fails,
        when somebody reads the thread, and when the context ends, however it does. The nodes of the run must come one
        after the other: what one wrote is saved with the checkpoint of its step, not before.

        What is written needs the claim, which is made here where none is given: once somebody else has claimed the
        thread, all writes raise `CheckpointOvertaken`.
        """
        held = self._held[thread_id] = _Held(claim=claim or await self.claim_run(thread_id))
        try:
            yield
        except BaseException:
            try:
                await self._write_held(held)
            except CheckpointError as error:  # what went wrong before is the error to raise
                log.warning("the progress of a run was not saved: %s", error)
            raise
        else:
            await self._write_held(held)
        finally:
            del self._held[thread_id]

    def flush_next(self, thread_id: str) -> None:
        """Write the checkpoint of the running step when it ends: the step was paid for and must not be repeated."""
        if (held := self._held.get(thread_id)) is not None:
            held.is_due = True

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint, or hold it back."""
        where = config["configurable"]
        held = self._held.get(where["thread_id"], _Held(is_due=True))
        held.add(StepCheckpoint(config, checkpoint, metadata, new_versions))
        if held.is_due:
            held.is_due = False
            await self._write_held(held)
        return {
            "configurable": {
                "thread_id": where["thread_id"],
                "checkpoint_ns": where["checkpoint_ns"],
                "checkpoint_id": checkpoint["id"],
            }
        }

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save what a node wrote before its step is over, unless the checkpoint of the step will hold it anyway."""
        held = self._held.get(config["configurable"]["thread_id"])
        comes_from_node = bool(task_path) and not any(channel in WRITES_IDX_MAP for channel, _ in writes)
        if held is not None and comes_from_node:
            return
        await self._write_held(held or _Held(), StepWrites(config, writes, task_id, task_path))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read the newest checkpoint of a thread, or the one named."""
        held = self._held.get(config["configurable"]["thread_id"], _Held())
        # It stays held: the run must not lose a step because somebody could not read.
        found = await self.read_step(config, after=held.checkpoint, claim=held.claim)
        if found is not None:
            continue_ids(found.config["configurable"]["checkpoint_id"])
        return found

    async def _write_held(self, held: _Held, writes: StepWrites | None = None) -> None:
        checkpoint = held.checkpoint
        try:
            if checkpoint is not None or writes is not None:
                await self.write_step(checkpoint, writes, claim=held.claim)
        except asyncio.CancelledError:  # it may not have been written, and will be when the context ends
            raise
        except BaseException:  # whoever waits for the run waits for one attempt, not for two
            held.drop(checkpoint)
            raise
        held.drop(checkpoint)


@dataclass
class _Held:
    """The newest checkpoint of a run, unless it is written; `is_due` where the next one must be.

    The claim is that of the run; outside of runs, as where conversations are moved, there is none.
    """

    checkpoint: StepCheckpoint | None = None
    is_due: bool = False
    claim: RunClaim | None = None

    def add(self, newer: StepCheckpoint) -> None:
        """Hold a checkpoint in the place of the one before, with what had changed by then."""
        before = newer.config["configurable"].get("checkpoint_id") or ""
        if self.claim is not None and newer.checkpoint["id"] <= before:  # the next to read would find the one before
            raise CheckpointError("The clock of this machine goes behind that of another one. Set it, and ask again.")
        if self.checkpoint is not None:
            newer = newer._replace(new_versions={**self.checkpoint.new_versions, **newer.new_versions})
        self.checkpoint = newer

    def drop(self, written: StepCheckpoint | None) -> None:
        """No longer hold what was written."""
        if self.checkpoint is written:
            self.checkpoint = None
