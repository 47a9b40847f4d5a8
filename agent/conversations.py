"""Opens and prunes the conversation database: Postgres if its address is given, else a SQLite file."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from pydantic import SecretStr

from agent.persistence.checkpointer import open_saver
from agent.persistence.conversation_saver import ConversationSaver, list_threads, make_checkpoint_id
from agent.persistence.evidence_store import name_unclaimed, split_checkpoints
from agent.persistence.postgres.saver import open_postgres_saver

# A run that claims the conversation meanwhile waits for the end of the transaction, or is seen by the other statements.
_TAKE = "UPDATE conversations SET used_at = 0 WHERE thread = ? AND used_at < ?"
_TAKEN = "EXISTS (SELECT 1 FROM conversations AS taken WHERE taken.thread = ? AND taken.used_at = 0)"


async def prune_conversations(saver: ConversationSaver, *, before: float) -> int:
    """Delete the conversations whose last step was before a time; return their number.

    Uses one transaction each, so running answers wait for one at most. Raises `CheckpointError`.
    """
    known = set(await list_threads(saver))
    columns = [*((table, "thread_id") for table in saver.checkpoint_tables), ("evidence", "thread")]
    for thread, checkpoints in await saver.rows(
        "SELECT thread, checkpoints FROM conversations WHERE used_at < ?", (before,)
    ):
        name = checkpoints or name_unclaimed(thread)
        values = [name] * len(saver.checkpoint_tables) + [thread, thread]
        deletions = [
            (f"DELETE FROM {table} WHERE {column} = ? AND {_TAKEN}", (value, thread))  # noqa: S608 - constants
            for (table, column), value in zip([*columns, ("conversations", "thread")], values, strict=True)
        ]  # the row goes last: it tells the other statements whether the conversation continues after all
        await saver.write_all([(_TAKE, (thread, before)), *deletions])
    await _sweep_checkpoints(saver, before)
    # Nothing is kept of a conversation before its row: without one, a crash has left the rest.
    await saver.write(
        "DELETE FROM evidence WHERE thread NOT IN (SELECT thread FROM conversations) "
        "AND thread NOT IN (SELECT thread_id FROM checkpoints)"
    )
    await saver.shrink()
    return len(known - set(await list_threads(saver)))


async def _sweep_checkpoints(saver: ConversationSaver, before: float) -> None:
    """Delete checkpoint threads that no conversation reads any more, such as those of overtaken runs."""
    found = await saver.rows("SELECT thread_id, max(checkpoint_id) FROM checkpoints GROUP BY thread_id")
    # After the threads: of the claims that were made meanwhile, none is among them.
    rows = await saver.rows("SELECT thread, claim, checkpoints FROM conversations")
    current = {checkpoints or name_unclaimed(thread) for thread, _, checkpoints in rows}
    claims = {thread: number for thread, number, _ in rows}
    oldest = make_checkpoint_id(before)
    for name, newest in found:
        thread, number = split_checkpoints(name)
        is_superseded = number < claims[thread] if thread in claims else newest < oldest
        if name not in current and is_superseded:
            await saver.write_all(saver.make_deletions(name))


def open_conversations(path: Path, url: SecretStr | None = None) -> AbstractAsyncContextManager[ConversationSaver]:
    """Open the conversations, creating them if missing, while the context is open; raises `CheckpointError`."""
    return open_saver(path) if url is None else open_postgres_saver(url.get_secret_value())


async def prune_idle_conversations(path: Path, url: SecretStr | None = None, *, before: float) -> int:
    """Delete the conversations whose last step was before a time; return their number.

    Uses a separate connection, and creates no file. Raises `CheckpointError`.
    """
    if url is None and not await asyncio.to_thread(path.is_file):
        return 0
    async with open_conversations(path, url) as saver:
        return await prune_conversations(saver, before=before)
