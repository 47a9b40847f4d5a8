"""The refs of a repository that is missing: names and commits, and fake code at each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from indexer.remotes.ref_list import RefTable
from indexer.types import NamedRef, Progress, RefKind
from tests.fakes.code import FakeCode


class FakeRefs:
    """Refs by their full names; `main` is followed. `commits` are known by the beginning of their ids."""

    problem = ""
    page = ""

    def __init__(self, refs: Mapping[str, str], *, commits: Sequence[str] = ()) -> None:
        self.table = RefTable(refs)
        self.commits = commits
        self.pinned: list[NamedRef] = []
        self.gate: asyncio.Event | None = None  # holds what is being indexed until it is set

    async def find(self, written: str, kind: RefKind | None = None) -> NamedRef | None:
        if kind == "commit":
            sha = next((each for each in self.commits if each.startswith(written)), "")
            return NamedRef(kind="commit", name=sha[:12], commit=sha) if sha else None
        found = self.table.find(written, kind)
        return replace(found, is_followed=True) if found is not None and found.name == "main" else found

    async def suggest(self, written: str) -> Sequence[str]:
        return self.table.suggest(written)

    async def pin(self, ref: NamedRef, progress: Callable[[Progress], None] | None = None) -> FakeCode:
        self.pinned.append(ref)
        if progress is not None:
            progress(Progress(stage="parsing", done=1, total=2))
        if self.gate is not None:
            await self.gate.wait()
        code = FakeCode({})
        code.commit = replace(code.commit, sha=ref.commit)
        return code

    async def read_file(self, commit: str, path: str) -> Sequence[str] | None:
        return [f"{path} at {commit}"] if commit in self.table.commits.values() else None

    async def list_kept(self) -> Sequence[NamedRef]:
        return ()

    async def refresh_kept(self) -> Sequence[NamedRef]:
        return ()

    async def sweep(self) -> None: ...
