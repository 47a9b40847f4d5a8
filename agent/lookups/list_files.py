"""The files and folders of a folder, or the files that match a glob."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AliasChoices, Field

from agent.evidence.coverage import deny
from agent.evidence.refs import is_test_or_docs, make_lines_ref
from agent.lookups.lookup import Arguments, CodeLookup, Look, Offset, Path, clean_path
from agent.lookups.read_file import make_unknown_path, name_similar
from agent.lookups.results import FolderListing, ListedEntry
from agent.repositories.joined_code import place_path
from indexer.types import FileEntry, Location

_NAMED_LANGUAGES = 4
_MAX_FIRST = 100  # characters of a first line


class ListArguments(Arguments):
    """A folder, or a glob."""

    folder: Annotated[
        Path, Field(validation_alias=AliasChoices("folder", "path"), description="The folder; empty for the root.")
    ] = ""
    glob: Annotated[str, Field(max_length=200, description="All files below it that match, such as **/*.py.")] = ""
    limit: Annotated[int, Field(ge=1, le=500)] = 100
    offset: Offset = 0


class ListFiles(CodeLookup[ListArguments, FolderListing]):
    """Lists a folder of the indexed commit."""

    name = "list_files"
    known_as = {"model": "list_directory"}  # noqa: RUF012
    title = "List files"
    description = "List a folder with how many files and lines are in it, or with `glob` the files below it that match."
    arguments = ListArguments
    result = FolderListing
    label = "Listing"
    argument_shown = "folder"

    def describe_target(self, args: Mapping[str, Any]) -> str:
        """Name the folder."""
        return str(args.get("folder") or args.get("path") or "/")

    async def find(self, args: ListArguments, look: Look) -> FolderListing:
        """List folders with the number of files below them, then files; each file shows its first line."""
        folder = place_path(look.code, clean_path(args.folder))
        listing = asyncio.to_thread(_list_entries, await look.code.files(), folder, args.glob)  # there may be very many
        entries, summary = await listing
        if folder and not entries and not args.glob:
            raise await make_unknown_path(look.code, folder)
        look.say(f"{folder or ''}/: {summary}")
        if not entries:
            look.deny(await deny(look.code, f"No path matches {args.glob[:200]}", quote=str))
        page = look.take_page(entries, args.limit, args.offset)
        for one in (entry for entry in page if entry.is_folder):
            look.say(f"{one.path}/ ({one.files} files, {one.lines:,} lines)")
        await cite_files(look, [one for one in page if not one.is_folder])
        return FolderListing(**look.head, entries=tuple(page))


async def cite_files(look: Look, files: Sequence[ListedEntry]) -> None:
    """List files; a model sees the first line of each, and citations lead there."""
    for one in files:
        ref = make_lines_ref(Location(path=one.path, start_line=1, end_line=1), "file", language=one.language)
        said = f"({f'{one.language}, ' if one.language else ''}{one.lines} lines)"
        if not look.is_wide:
            first = (await look.code.read(one.path, 1, 1)).text.strip()
            said = f"{first[:_MAX_FIRST]} {said}".strip()
        look.cite(ref, said)


def list_entry(file: FileEntry) -> ListedEntry:
    """Describe a file."""
    return ListedEntry(path=file.path, lines=file.lines, language=file.language)


def _list_entries(files: Sequence[FileEntry], folder: str, glob: str) -> tuple[list[ListedEntry], str]:
    """Return the entries of a folder, or the files below it that match a glob, with sizes."""
    prefix = f"{folder}/" if folder else ""
    below = [one for one in files if one.path.startswith(prefix)]
    if glob:
        from indexer.text.globs import compile_globs  # pathspec takes its time to import

        matching = compile_globs((glob,))
        below = [one for one in below if matching.match_file(one.path)]
    folders: dict[str, list[FileEntry]] = {}
    found: list[ListedEntry] = []
    for entry in below:
        name, slash, _ = entry.path.removeprefix(prefix).partition("/")
        if slash and not glob:
            folders.setdefault(name, []).append(entry)
        else:
            found.append(list_entry(entry))
    counted = [
        ListedEntry(path=f"{prefix}{name}", is_folder=True, files=len(own), lines=sum(one.lines for one in own))
        for name, own in folders.items()
    ]
    languages = Counter(entry.language or "other" for entry in below).most_common(_NAMED_LANGUAGES)
    summary = (
        f"{len(counted)} folders and {len(found)} files; {len(below)} files and {sum(one.lines for one in below):,} "
        f"lines in all, {', '.join(f'{language} {count}' for language, count in languages)}."
    )
    return [*counted, *found], summary


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
        """List the files; if there are none, those with the most similar paths."""
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
