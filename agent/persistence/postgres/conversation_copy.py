"""Copies conversations from one database to another, through the checkpointers of both, and compares what arrived."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, CheckpointTuple

from agent.errors import CheckpointError
from agent.persistence.checkpointer import open_saver
from agent.persistence.conversation_saver import ConversationSaver
from agent.persistence.evidence_store import EvidenceStore
from agent.persistence.postgres.connections import OneTransaction
from agent.persistence.postgres.saver import PostgresSaver
from agent.text.storable import make_storable_in_postgres

if TYPE_CHECKING:  # comes with the extra `cluster`
    from psycopg import AsyncConnection

Report = Callable[[int, int], None]  # is told how many conversations are done, of how many


@dataclass(kw_only=True, slots=True)
class ConversationCounts:
    """How much was copied."""

    conversations: int = 0
    checkpoints: int = 0
    writes: int = 0
    evidence: int = 0


async def copy_conversations_to_postgres(
    path: Path, connection: AsyncConnection[Any], report: Report
) -> ConversationCounts:
    """Copy the conversations of a SQLite file within a transaction of somebody else's; raises `CheckpointError`."""
    async with open_saver(path) as source:
        return await copy_conversations(source, PostgresSaver(OneTransaction(connection)), report)


async def copy_conversations_to_sqlite(
    connection: AsyncConnection[Any], path: Path, report: Report
) -> ConversationCounts:
    """Copy the conversations that a transaction sees to a SQLite file, made when missing; raises `CheckpointError`."""
    async with open_saver(path) as target:
        return await copy_conversations(PostgresSaver(OneTransaction(connection)), target, report)


async def copy_conversations(
    source: ConversationSaver, target: ConversationSaver, report: Report
) -> ConversationCounts:
    """Copy all conversations, of which nobody may change one meanwhile.

    Raises `CheckpointError`, also where the target holds something, or not in the end what the source does.
    """
    if await _list_threads(target):
        raise CheckpointError("The database to move to holds conversations already. Name one that is empty.")
    threads = await _list_threads(source)
    counts = ConversationCounts(conversations=len(threads))
    for done, thread in enumerate(threads, 1):
        await _copy_thread(source, target, thread, counts)
        await _copy_evidence(source, target, thread, counts)
        await _copy_token(source, target, thread)
        report(done, len(threads))
    return counts


async def _list_threads(saver: ConversationSaver) -> list[str]:
    rows = await saver.rows(
        "SELECT thread_id FROM checkpoints UNION SELECT thread FROM evidence UNION SELECT thread_id FROM run_tokens"
    )
    return sorted(thread for (thread,) in rows)


async def _copy_thread(
    source: ConversationSaver, target: ConversationSaver, thread: str, counts: ConversationCounts
) -> None:
    where: RunnableConfig = {"configurable": {"thread_id": thread}}
    found = [one async for one in source.alist(where)]
    for one in reversed(found):
        parent = one.parent_config or _name_parent(one)
        await target.aput(parent, one.checkpoint, one.metadata, one.checkpoint["channel_versions"])
        await _copy_writes(source, target, one)
        counts.writes += len(one.pending_writes or ())
    counts.checkpoints += len(found)
    if [_normalize(one) for one in found] != [_normalize(one) async for one in target.alist(where)]:
        raise CheckpointError(f"The conversation {thread} was not copied correctly. Report this.")


def _name_parent(first: CheckpointTuple) -> RunnableConfig:
    """Return what the checkpoint is put behind that has none before it."""
    where = first.config["configurable"]
    return {"configurable": {"thread_id": where["thread_id"], "checkpoint_ns": where["checkpoint_ns"]}}


async def _copy_writes(source: ConversationSaver, target: ConversationSaver, one: CheckpointTuple) -> None:
    """Copy what the tasks of an unfinished step have written, each under the path that it had."""
    where = one.config["configurable"]
    sql = f"SELECT task_id, max(task_path) FROM {source.side_tables[0]} WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? GROUP BY task_id"  # noqa: E501, S608 - a constant
    values = (where["thread_id"], where["checkpoint_ns"], where["checkpoint_id"])
    for task, path in await source.rows(sql, values):
        written = [(channel, value) for by, channel, value in one.pending_writes or () if by == task]
        # What a task says beside its results has places of its own; the results are numbered from zero.
        for is_special in (True, False):
            writes = [(channel, value) for channel, value in written if (channel in WRITES_IDX_MAP) == is_special]
            if writes:
                await target.aput_writes(one.config, writes, task, path)


async def _copy_evidence(
    source: ConversationSaver, target: ConversationSaver, thread: str, counts: ConversationCounts
) -> None:
    rows = await source.rows("SELECT key, text FROM evidence WHERE thread = ?", (thread,))
    evidence = EvidenceStore(target).of(thread)
    for key, text in rows:
        await evidence.keep(key, text)
    counts.evidence += len(rows)
    arrived = await evidence.texts([key for key, _ in rows])
    expected, found = ({key: make_storable_in_postgres(text) for key, text in each} for each in (rows, arrived.items()))
    if expected != found:
        raise CheckpointError(f"The evidence of the conversation {thread} was not copied correctly. Report this.")


async def _copy_token(source: ConversationSaver, target: ConversationSaver, thread: str) -> None:
    """Copy which run was the last, and when: what is too old to be kept is so in the other database as well."""
    select = "SELECT token, used_at FROM run_tokens WHERE thread_id = ?"
    rows = await source.rows(select, (thread,))
    for row in rows:
        await target.write("INSERT INTO run_tokens (thread_id, token, used_at) VALUES (?, ?, ?)", (thread, *row))
    if await target.rows(select, (thread,)) != rows:
        raise CheckpointError(f"The last run of the conversation {thread} was not copied correctly. Report this.")


def _normalize(one: CheckpointTuple) -> Sequence[Any]:
    """Return what has to be the same in both databases."""
    values = {channel: make_storable_in_postgres(value) for channel, value in one.checkpoint["channel_values"].items()}
    return one.config, one.parent_config, {**one.checkpoint, "channel_values": values}, one.pending_writes
