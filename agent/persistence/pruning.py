"""Forgets conversations that nobody has gone on with for long: checkpoints, run journal and evidence together."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agent.persistence.checkpointer import open_saver

_IDLE = "SELECT thread FROM agent_executions GROUP BY thread HAVING max(updated_at) < ?"
# A run is in the journal before anything else of it is: what no run is known of was left by a crash.
_LEFT = """SELECT thread_id FROM checkpoints UNION SELECT thread_id FROM writes UNION SELECT thread FROM evidence
    EXCEPT SELECT thread FROM agent_executions"""
# The journal comes last: it tells the other statements whether the conversation goes on after all.
_STATEMENTS = tuple(
    f"DELETE FROM {table} WHERE {column} = ? AND NOT EXISTS "  # noqa: S608 - constants
    "(SELECT 1 FROM agent_executions live WHERE live.thread = ? AND live.updated_at >= ?)"
    for table, column in (
        ("writes", "thread_id"),
        ("checkpoints", "thread_id"),
        ("evidence", "thread"),
        ("agent_executions", "thread"),
    )
)


async def prune_idle_conversations(path: Path, *, before: float) -> int:
    """Forget the conversations of a database whose last turn was before a time; return how many.

    Each goes in one transaction, through a connection of its own, so that answers under way wait for one conversation
    at most. Nothing is made where there is no database. Raises `CheckpointError`.
    """
    if not await asyncio.to_thread(path.is_file):
        return 0
    async with open_saver(path) as saver:
        idle = await saver.rows(_IDLE, (before,))
        threads = [thread for (thread,) in (*idle, *await saver.rows(_LEFT))]
        for thread in threads:
            await saver.write_all([(statement, (thread, thread, before)) for statement in _STATEMENTS])
        await saver.shrink()
    return len(threads)
