"""The lines that register `citebot mcp` in an editor, with the path of the citebot that prints them."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Literal

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
