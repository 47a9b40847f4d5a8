"""From the bytes of a file to the text that may be shown of it: judged, decoded, notebooks unpacked, secrets masked."""

from __future__ import annotations

from indexer.git.file_selection import MAX_BYTES, judge_content
from indexer.git.gitattributes import UNMARKED, FileAttributes
from indexer.secrets import redact_secrets
from indexer.text.decoding import decode_file
from indexer.text.notebooks import is_notebook, read_notebook


class UnfitContents(Exception):
    """The contents of a file are not indexed; the message is the reason."""


def read_contents(path: str, data: bytes, marks: FileAttributes = UNMARKED, *, usual: str = "") -> str:
    """Return the masked text of a file; `usual` is the encoding of the repository's other files."""
    reason: str | None = judge_content(path, data, marks)
    text = decode_file(data, declared=marks.encoding, usual=usual) if reason is None else None
    if text is not None and is_notebook(path):
        text = read_notebook(text) or text
        reason = "too large" if len(text) > MAX_BYTES else None
    if text is None or reason is not None:
        raise UnfitContents(reason or "binary")
    return redact_secrets(text)
