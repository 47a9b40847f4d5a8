"""Decides whether a path from a git tree is safe: on any system, in any address, and on one line."""

from __future__ import annotations

import re
from urllib.parse import unquote

# Characters that would start a new line, or change the reading direction, where a path is shown.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_DRIVE = re.compile(r"[A-Za-z]:")
# Dots that lead up a folder where the rest of a name is taken for a query, a fragment or parameters.
_DOTS = re.compile(r"(?:^|[/\\])\.{1,2}[?#;]")
# Characters that some file systems ignore in a name.
_IGNORABLE = dict.fromkeys((*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF))
MAX_CHARACTERS = 4_096  # characters of a path; no system has files with longer ones
_GIT_FOLDERS = frozenset({".git", "git~1"})


def is_safe_path(path: str) -> bool:
    """Whether a path can name a file, stays within its project on any system, and is shown as one line.

    A git tree may hold any names, such as `..`, or git's own folder. Backslashes may also be escapes of bytes that are
    not UTF-8, but never between two dots. The percent-decoded path, which web servers see, must be safe as well.
    """
    return len(path) <= MAX_CHARACTERS and all(
        not (_CONTROLS.search(each) or _DRIVE.match(each) or _DOTS.search(each))
        and all(map(_is_safe_name, each.split("/")))
        for each in {path, unquote(path)}
    )


def _is_safe_name(name: str) -> bool:
    bare = (part.translate(_IGNORABLE).partition(":")[0].rstrip(" .").lower() for part in name.split("\\") if part)
    return bool(name) and all(part and part not in _GIT_FOLDERS for part in bare)
