"""Where conversations are kept: in Postgres where its address is given, else in a SQLite file."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from pydantic import SecretStr

from agent.persistence.checkpointer import open_saver
from agent.persistence.conversation_saver import ConversationSaver
from agent.persistence.postgres.saver import open_postgres_saver
from agent.persistence.pruning import prune_conversations


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
