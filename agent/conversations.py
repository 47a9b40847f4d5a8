"""Opens and prunes the conversation database: Postgres where its address is given, else a SQLite file."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from pydantic import SecretStr

from agent.persistence.checkpointer import open_saver
from agent.persistence.conversation_saver import ConversationSaver, make_checkpoint_id
from agent.persistence.evidence_store import make_claim
from agent.persistence.postgres.saver import open_postgres_saver

# Nobody has claimed what an earlier version has written last: its checkpoints tell how old it is, if it has any.
_IDLE = """SELECT thread_id FROM run_tokens WHERE used_at < ?
    UNION SELECT thread_id FROM checkpoints GROUP BY thread_id
    HAVING max(checkpoint_id) < ? AND thread_id NOT IN (SELECT thread_id FROM run_tokens)"""
# The sweep claims what it forgets, as a run does, but leaves what a run has used in the meantime.
_TAKE = """INSERT INTO run_tokens (thread_id, token, used_at) VALUES (?, ?, 0) ON CONFLICT (thread_id)
    DO UPDATE SET token = excluded.token, used_at = 0 WHERE run_tokens.used_at < ?"""


async def prune_conversations(saver: ConversationSaver, *, before: float) -> int:
    """Forget the conversations of a database whose last step was before a time; return how many.

    Each goes in one transaction, so that running answers wait for one conversation at most. Raises `CheckpointError`.
    """
    # A run has claimed its thread before anything of it is kept: where there is no claim, a crash has left the rest.
    others = [*((table, "thread_id") for table in saver.side_tables), ("evidence", "thread")]
    kept = " UNION ".join(f"SELECT {column} FROM {table}" for table, column in others)  # noqa: S608 - constants
    left = f"SELECT * FROM ({kept}) AS kept EXCEPT SELECT thread_id FROM checkpoints EXCEPT SELECT thread_id FROM run_tokens"  # noqa: E501, S608 - constants
    # The claim goes last: it tells the other statements whether the conversation continues after all.
    statements = [
        f"DELETE FROM {table} WHERE {column} = ? AND EXISTS "  # noqa: S608 - constants
        "(SELECT 1 FROM run_tokens mine WHERE mine.thread_id = ? AND mine.token = ?)"
        for table, column in (*others, ("checkpoints", "thread_id"), ("run_tokens", "thread_id"))
    ]
    idle = await saver.rows(_IDLE, (before, make_checkpoint_id(before)))
    threads = [thread for (thread,) in (*idle, *await saver.rows(left))]
    for thread in threads:
        claim = make_claim(thread)
        deletions = [(statement, (thread, *claim)) for statement in statements]
        await saver.write_all([(_TAKE, (*claim, before)), *deletions])
    await saver.shrink()
    return len(threads)


def open_conversations(path: Path, url: SecretStr | None = None) -> AbstractAsyncContextManager[ConversationSaver]:
    """Open the conversations, made when missing, for as long as the context is open; raises `CheckpointError`."""
    return open_saver(path) if url is None else open_postgres_saver(url.get_secret_value())


async def prune_idle_conversations(path: Path, url: SecretStr | None = None, *, before: float) -> int:
    """Forget the conversations whose last step was before a time; return how many.

    They go through a connection of its own. Nothing is made where there is no file. Raises `CheckpointError`.
    """
    if url is None and not await asyncio.to_thread(path.is_file):
        return 0
    async with open_conversations(path, url) as saver:
        return await prune_conversations(saver, before=before)
