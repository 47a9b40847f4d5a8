"""Files by their paths."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AliasChoices, Field

from agent.evidence.coverage import deny
from agent.evidence.refs import is_test_or_docs
from agent.lookups.list_files import cite_files, list_entry
from agent.lookups.lookup import Arguments, CodeLookup, Look, Offset, Path, clean_path
from agent.lookups.read_file import name_similar
from agent.lookups.results import FolderListing
from agent.repositories.joined_code import place_path
from indexer.types import FileEntry


class FilesArguments(Arguments):
    """A glob, and where."""

    glob: Annotated[
        str,
        Field(
            min_length=1,
            max_length=200,
            validation_alias=AliasChoices("glob", "pattern"),
            description="Paths as in .gitignore: *.sql anywhere, docs/**/*.md, or a name such as Dockerfile.",
        ),
    ]
    path: Annotated[Path, Field(description="Only below this folder; empty for everywhere.")] = ""
    limit: Annotated[int, Field(ge=1, le=500)] = 60
    offset: Offset = 0


class FindFiles(CodeLookup[FilesArguments, FolderListing]):
    """Finds files by a glob."""

    name = "find_files"
    title = "Find files"
    description = "Find files whose paths match a glob, in any case: code first, then tests and documents."
    arguments = FilesArguments
    result = FolderListing
    label = "Finding files"
    argument_shown = "glob"

    def describe_target(self, args: Mapping[str, Any]) -> str:
        """Name the glob and the folder."""
        path = str(args.get("path") or "")[:100]
        return f"{args.get('glob', args.get('pattern', ''))}{f' in {path}' if path else ''}"

    async def find(self, args: FilesArguments, look: Look) -> FolderListing:
        """List the files; if there are none, those whose paths are most like the glob."""
        folder, files = place_path(look.code, clean_path(args.path)), await look.code.files()
        found = await asyncio.to_thread(_match_files, files, folder, args.glob)  # there may be very many
        page = look.take_page([list_entry(one) for one in found], args.limit, args.offset)
        if found:
            look.say(f"{len(found):,} files match {args.glob}:")
        else:
            no = await deny(look.code, f"No path matches {args.glob}", quote=str)
            look.deny(no, f" {await name_similar(look.code, args.glob)}".rstrip())
        await cite_files(look, page)
        return FolderListing(**look.head, entries=tuple(page))


def _match_files(files: Sequence[FileEntry], folder: str, glob: str) -> list[FileEntry]:
    """Return the files below a folder that match, the code first."""
    from indexer.text.globs import compile_globs  # pathspec takes its time to import

    matching = compile_globs((glob.lower(),))
    below = [one for one in files if not folder or one.path.startswith(f"{folder}/")]
    found = [one for one in below if matching.match_file(one.path.lower())]
    return sorted(found, key=lambda one: (one.source_type != "code", is_test_or_docs(one.path), one.path))
