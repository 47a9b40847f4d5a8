"""Commands for other programs: an editor's MCP server, its configuration, and tokens."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bot.errors import BotError, SettingsError
from bot.repositories.refresh import LoggingDisplay
from bot.settings import PERSON, RepositoryTable, Settings
from bot.surfaces.local_core import open_local_core
from bot.surfaces.principals import hash_token, make_local_principal, make_token
from indexer import describe_extra

if TYPE_CHECKING:
    from bot.adapters.terminal.output import CommandOutcome


async def serve_mcp(
    settings: Settings, tables: Sequence[RepositoryTable], *, say: Callable[[str], None]
) -> CommandOutcome:
    """Serve the client at standard input until that ends, or until cancelled."""
    loading = asyncio.create_task(asyncio.to_thread(_load_sdk))
    try:
        async with open_local_core(settings, tables, LoggingDisplay(), say=say) as core:
            await loading
            from bot.surfaces.mcp.mcp_server import make_server
            from bot.surfaces.mcp.mcp_stdio import serve_stdio

            principal = make_local_principal()
            await serve_stdio(make_server(core, lambda: principal))
    finally:
        await asyncio.wait({loading})
    from bot.adapters.terminal.output import CommandOutcome  # no client has to wait for it

    return CommandOutcome()


def _load_sdk() -> None:
    """Import the SDK, which takes longer than all the rest, while the index is opened."""
    try:
        import bot.surfaces.mcp.mcp_server  # noqa: F401
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"mcp", "mcp_types"}:
            raise
        raise BotError(f"The MCP server is not installed. {describe_extra('mcp')}") from error


Editor = Literal["claude", "cursor", "vscode"]
FOR_PROGRAMS = (
    "citebot mcp is for an editor or an agent, which starts it and talks to it over standard input. "
    "To register it there, paste the output of `citebot mcp --print-config claude` (or cursor, or vscode)."
)


def format_config(editor: Editor, repo: str | None) -> str:
    """Return a command for Claude Code or an editor's JSON; without a repository, the editor's project is served."""
    command = str(Path(sys.prefix) / "bin" / "citebot")
    if editor == "claude":
        options = [] if repo is None else ["--repo", repo]
        return shlex.join(["claude", "mcp", "add", "citebot", "--", command, "mcp", *options])
    server = {"command": command, "args": ["mcp", "--repo", repo or "${workspaceFolder}"]}
    if editor == "cursor":
        return json.dumps({"mcpServers": {"citebot": server}}, indent=2)
    return json.dumps({"servers": {"citebot": {"type": "stdio", **server}}}, indent=2)


_NOT_A_PERSON = "{person!r} is not a person. Write the platform and the id there, such as slack:U0123 or discord:123."


def write_token(person: str) -> str:
    """Make a token, which is shown once and stored nowhere."""
    if not re.fullmatch(PERSON, person):
        raise SettingsError(_NOT_A_PERSON.format(person=person[:80]))
    made = make_token()
    return (
        f"Put this into citebot.toml, and restart `citebot serve`:\n\n"
        f'[[mcp.tokens]]\nperson = "{person}"\nsha256 = "{hash_token(made)}"\n\n'
        f"Give this to {person}, who keeps it secret; it is not shown again:\n\n{made}"
    )
