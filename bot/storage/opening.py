"""Opens the chat side's database: Postgres where its address is set, else SQLite in the data folder."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from pydantic import SecretStr

from bot.storage.database import INBOX_FILE, SqlDatabase, open_database
from bot.storage.postgres import open_postgres


def open_store(home: Path, url: SecretStr | None) -> AbstractAsyncContextManager[SqlDatabase]:
    """Open the database for as long as the context is entered; raises `InboxError`."""
    return open_database(home / INBOX_FILE) if url is None else open_postgres(url.get_secret_value())


def has_store(home: Path, url: SecretStr | None) -> bool:
    """Whether anything was ever stored; the answer for Postgres is yes, as it would have to be asked."""
    return url is not None or (home / INBOX_FILE).is_file()
