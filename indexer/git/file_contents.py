"""Turns a file's bytes into showable text: selected, decoded, unpacked from notebooks, with secrets masked."""

from __future__ import annotations

import os

from indexer.git.file_selection import MAX_BYTES, judge_content
from indexer.git.gitattributes import UNMARKED, FileAttributes
from indexer.git.objects import TreeEntry, read_tree
from indexer.git.repository import Repository
from indexer.git.safe_paths import is_safe_path
from indexer.secrets import redact_secrets
from indexer.text.decoding import decode_file, is_binary, is_lfs_pointer, is_utf8
from indexer.text.notebooks import is_notebook, read_notebook


class UnfitContents(Exception):
    """The contents of a file cannot be indexed; the message gives the reason."""


def read_contents(path: str, data: bytes, marks: FileAttributes = UNMARKED, *, usual: str = "") -> str:
    """Return the masked text of a file; `usual` is the encoding of the repository's other files."""
    reason: str | None = judge_content(path, data, marks)
    text = decode_file(data, declared=marks.encoding, usual=usual) if reason is None else None
    if text is not None and is_notebook(path):
        text = read_notebook(text) or text
        reason = "too large" if len(text) > MAX_BYTES and not marks.is_large else None
    if text is None or reason is not None:
        raise UnfitContents(reason or "binary")
    return redact_secrets(text)


MAX_LOCK_BYTES = 8_000_000


def read_masked_lines(repository: Repository, entry: TreeEntry) -> list[str] | str:
    """Return the lines of a file, or the reason why it is not indexed."""
    data = next(data for _, data in repository.iter_blobs([entry.blob]))
    usual = "" if is_utf8(data) else repository.usual_encoding
    try:
        text = read_contents(entry.path, data, entry.marks, usual=usual)
    except UnfitContents as error:
        return str(error)
    return text.removesuffix("\n").split("\n") if text else []


def read_file_at(repository: Repository, sha: str, path: str) -> list[str] | None:
    """Return the lines of a file at a local commit; None if it has no such file, or one that may not be shown."""
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
