"""Reads a file of any commit as it would be indexed: chosen by the same rules, decoded, secrets masked.

Lock files, which are not indexed, are read too: they say which versions a project uses.
"""

from __future__ import annotations

import os

from indexer.git.file_contents import UnfitContents, read_contents
from indexer.git.objects import TreeEntry, read_tree
from indexer.git.repository import Repository
from indexer.git.safe_paths import is_safe_path
from indexer.secrets import redact_secrets
from indexer.text.decoding import decode_file, is_binary, is_lfs_pointer, is_utf8

MAX_LOCK_BYTES = 8_000_000


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
    if any((one.path, one.reason) == (path, "lock file") for one in listing.omissions):
        return _read_lock_file(repository, sha, path)
    entry = next((one for one in listing.entries if one.path == path), None)
    lines = read_masked_lines(repository, entry) if entry is not None else ""
    return lines if isinstance(lines, list) else None


def _read_lock_file(repository: Repository, sha: str, path: str) -> list[str] | None:
    item = next((one for one in read_tree(repository.git, sha, os.fsencode(path)) if one.path == path), None)
    if item is None or (item.size or 0) > MAX_LOCK_BYTES:
        return None
    data = next(data for _, data in repository.iter_blobs([item.sha]))
    text = None if is_lfs_pointer(data) or is_binary(data) else decode_file(data)
    return redact_secrets(text).removesuffix("\n").split("\n") if text is not None else None
