"""Opens clients of Chroma, for a folder or for a server, without its package's side effects."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from indexer.checksums import Checksums

if TYPE_CHECKING:
    from chromadb.api.client import Client

_LOADING = Lock()
_ANSWER_SECONDS, _CONNECT_SECONDS = 60.0, 5.0


def _load_chroma() -> None:
    """Import Chroma, which takes a second, and keep it from reading a `.env` of the current folder.

    Its package reads settings on import. Such a file could end or block this process, and may come from the repository.
    """
    with _LOADING:
        package, spec = None, None
        if "chromadb" not in sys.modules and (spec := importlib.util.find_spec("chromadb")) is not None:
            package = sys.modules["chromadb"] = importlib.util.module_from_spec(spec)
        try:
            from chromadb.config import Settings

            Settings.model_config["env_file"] = None
            if package is not None and spec is not None and spec.loader is not None:
                spec.loader.exec_module(package)
        except BaseException:
            if package is not None:
                del sys.modules["chromadb"]  # it is only half imported
            raise


def open_folder_client(folder: Path) -> Client:
    """Open the store in a folder; raises Chroma's errors."""
    _load_chroma()
    from chromadb.api.client import Client
    from chromadb.api.shared_system_client import SharedSystemClient
    from chromadb.config import Settings

    # Everything that decides where and how is given here, because Chroma takes the rest from the environment, where
    # another program's settings may stand.
    settings = Settings(
        anonymized_telemetry=False,
        chroma_api_impl="chromadb.api.rust.RustBindingsAPI",
        is_persistent=True,
        migrations="apply",
        persist_directory=str(folder),
    )
    try:
        return Client(settings=settings)
    except BaseException:
        # What failed to start stays in Chroma's table of folders, and would be handed out for the rebuilt one.
        if str(folder) not in SharedSystemClient._identifier_to_refcount:  # noqa: SLF001
            SharedSystemClient._identifier_to_system.pop(str(folder), None)  # noqa: SLF001
        raise


def open_server_client(url: str) -> Client:
    """Open a client of the server at an address; raises the errors of Chroma and httpx."""
    _load_chroma()
    from chromadb.api.client import Client
    from chromadb.auth import UserIdentity
    from chromadb.config import Settings
    from httpx import Timeout

    settings = Settings(
        anonymized_telemetry=False,
        chroma_api_impl="chromadb.api.fastapi.FastAPI",
        chroma_client_auth_provider=None,
        chroma_server_headers=None,
        chroma_server_host=url,
        chroma_server_http_port=0,  # must be given, and is not used beside a whole address
        chroma_server_ssl_enabled=url.startswith("https:"),
        chroma_server_ssl_verify=True,
    )

    class BoundedClient(Client):
        """Limits waiting, because Chroma would wait forever for a server that does not answer."""

        def get_user_identity(self) -> UserIdentity:
            # The first thing that is asked of the server, by the constructor.
            session = self._server._session  # type: ignore[attr-defined]  # noqa: SLF001
            session.timeout = Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS)
            return super().get_user_identity()

    return BoundedClient(settings=settings)


def close_client(client: Client) -> None:
    """Close a client, and its connections, which Chroma leaves open; a second call does nothing."""
    servers = (client._server, client._admin_client._server)  # type: ignore[attr-defined]  # noqa: SLF001
    client.close()
    for server in servers:
        if (session := getattr(server, "_session", None)) is not None:
            session.close()


def find_checksums(folder: Path) -> Checksums:
    """Find the digests of a Chroma folder, which exist after it was closed."""
    return Checksums(folder / "checksums.json", lambda: [*folder.glob("*/*"), *folder.glob("*.sqlite3")])
