"""Lists what a class or a file consists of."""

from __future__ import annotations

from agent.ports import CodeSearch
from indexer.models import Definition, Symbol


async def list_members(code: CodeSearch, path: str, parent: str = "") -> list[Definition]:
    """Return what is defined directly within a definition, or at the top level of the file, in file order."""
    nobody = Symbol(
        name="",
        qualified_name=f"{parent}." if parent else "",
        kind="function",
        signature="",
        doc="",
        start_line=0,
        end_line=0,
    )
    found = await code.siblings(Definition(path=path, symbol=nobody))
    return sorted(found, key=lambda one: one.symbol.start_line)
