"""Reads a file of any commit as it would be indexed: chosen by the same rules, decoded, secrets masked."""

from __future__ import annotations

import os

from indexer.git.file_contents import UnfitContents, read_contents
from indexer.git.objects import TreeEntry
from indexer.git.repository import Repository
from indexer.git.safe_paths import is_safe_path
from indexer.text.decoding import is_utf8


def read_masked_lines(repository: Repository, entry: TreeEntry) -> list[str] | str:
    """Return the lines of a file; or the reason why it is not indexed."""
    data = next(data for _, data in repository.iter_blobs([entry.blob]))
    usual = "" if is_utf8(data) else repository.usual_encoding
    try:
        text = read_contents(entry.path, data, entry.marks, usual=usual)
    except UnfitContents as error:
        return str(error)
    return text.removesuffix("\n").split("\n") if text else []


def read_file_at(repository: Repository, sha: str, path: str) -> list[str] | None:
    """Return the lines of a file at a commit that is here; None if it has none of that name that may be shown."""
    if not is_safe_path(path):
        return None
    listing = repository.list_paths(sha, [os.fsencode(path)])
    entry = next((one for one in listing.entries if one.path == path), None)
    lines = read_masked_lines(repository, entry) if entry is not None else ""
    return lines if isinstance(lines, list) else None
