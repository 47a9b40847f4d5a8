"""Copies conversations between databases through both checkpointers, and compares the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple

from agent.errors import CheckpointError
from agent.persistence.checkpointer import open_saver
from agent.persistence.conversation_saver import (
    ConversationSaver,
    fork_checkpoint,
    list_threads,
    locate_checkpoints,
)
from agent.persistence.evidence_store import EvidenceStore
from agent.persistence.postgres.database import PostgresTransaction
from agent.persistence.postgres.saver import PostgresConversations
from agent.text.storable import make_storable_in_postgres

_OF_THREAD = "SELECT thread, claim, checkpoints, used_at, commits FROM conversations WHERE thread = ?"
_OF_CLAIMS = "SELECT newest FROM claims"

Report = Callable[[int, int], None]  # is told how many conversations are done, of how many


@dataclass(kw_only=True, slots=True)
class ConversationCounts:
    """The numbers of copied rows."""

    conversations: int = 0
    evidence: int = 0


async def copy_conversations_to_postgres(
    path: Path, transaction: PostgresTransaction, report: Report
) -> ConversationCounts:
    """Copy the conversations of a SQLite file within the caller's transaction; raises `CheckpointError`."""
    async with open_saver(path) as source:
        return await copy_conversations(source, PostgresConversations(transaction), report)


async def copy_conversations_to_sqlite(
    transaction: PostgresTransaction, path: Path, report: Report
) -> ConversationCounts:
    """Copy the conversations visible to a transaction to a SQLite file, creating it if missing; raises
    `CheckpointError`.
    """
    async with open_saver(path) as target:
        return await copy_conversations(PostgresConversations(transaction), target, report)


async def copy_conversations(
    source: ConversationSaver, target: ConversationSaver, report: Report
) -> ConversationCounts:
    """Copy all conversations; nobody may change one meanwhile.

    Raises `CheckpointError`, even if the target is not empty or lacks something in the end.
    """
    if await list_threads(target):
        raise CheckpointError("The database to move to holds conversations already. Name one that is empty.")
    threads = await list_threads(source)
    counts = ConversationCounts(conversations=len(threads))
    async with source.open_checkpoints() as old, target.open_checkpoints() as new:
        for done, thread in enumerate(threads, 1):
            name, _ = await source.find_newest(thread)
            await fork_checkpoint(old, name, new, name)
            found = [await each.aget_tuple(locate_checkpoints(name)) for each in (old, new)]
            if _normalize(found[0]) != _normalize(found[1]):
                raise CheckpointError(f"The conversation {thread} was not copied correctly. Report this.")
            await _copy_evidence(source, target, thread, counts)
            await _copy_rows(source, target, _OF_THREAD, (thread,), f"the conversation {thread}")
            report(done, len(threads))
    await target.write("DELETE FROM claims")
    await _copy_rows(source, target, _OF_CLAIMS, (), "the number of claims")
    return counts


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


async def _copy_rows(
    source: ConversationSaver, target: ConversationSaver, query: str, values: Sequence[Any], what: str
) -> None:
    """Copy our rows unchanged, expired ones included."""
    table = query.partition(" FROM ")[2].split()[0]
    rows = await source.rows(query, values)
    for row in rows:
        await target.write(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608 - constants
    if await target.rows(query, values) != rows:
        raise CheckpointError(f"The row of {what} was not copied correctly. Report this.")


def _normalize(found: CheckpointTuple | None) -> Sequence[Any]:
    """Return the values that must be the same in both databases."""
    if found is None:
        return ()
    texts = found.checkpoint["channel_values"]
    values = {channel: make_storable_in_postgres(value) for channel, value in texts.items()}
    writes = sorted((task, channel, repr(value)) for task, channel, value in found.pending_writes or ())
    return found.config, {**found.checkpoint, "channel_values": values}, writes
