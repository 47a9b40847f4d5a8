"""The lookups; each one appears on every surface."""

from __future__ import annotations

from typing import Any

from agent.lookups.calls import FindCallees, FindCallers
from agent.lookups.compare_refs import CompareRefs
from agent.lookups.find_symbol import FindSymbol
from agent.lookups.grep import Grep
from agent.lookups.list_files import FindFiles, ListFiles
from agent.lookups.lookup import CodeLookup
from agent.lookups.read_file import ReadFile
from agent.lookups.repository_log import FileHistory, RepositoryLog
from agent.lookups.search_code import SearchCode

LOOKUPS: tuple[CodeLookup[Any, Any], ...] = (
    SearchCode(),
    ReadFile(),
    ListFiles(),
    FindFiles(),
    FindSymbol(),
    FindCallers(),
    FindCallees(),
    Grep(),
    FileHistory(),
    RepositoryLog(),
    CompareRefs(),
)
