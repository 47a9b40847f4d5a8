"""The folder that somebody means, among those that the index has."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from bot.errors import NothingToDraw
from bot.markdown import to_one_line

_MOST_NEAR = 3
_LONGEST = 200
_WHOLE = frozenset({"", ".", "/"})


def find_folder(named: str, folders: Iterable[str], *, files: Iterable[str], repository: str) -> str:
    """Find a folder by its path, else by the end of it; empty for the whole repository.

    `NothingToDraw` lists the alternatives if there is none, or several.
    """
    wanted = named.strip("`'\"").removeprefix("./").strip("/")[:_LONGEST]
    if named in _WHOLE or wanted in _WHOLE:
        return ""
    known = [*folders]
    if wanted in known:
        return wanted
    found = [each for each in known if f"/{each}".lower().endswith(f"/{wanted}".lower())]
    if len(found) == 1:
        return found[0]
    raise NothingToDraw(_explain(wanted, found, known, files, repository))


def _explain(wanted: str, found: Sequence[str], known: Sequence[str], files: Iterable[str], repository: str) -> str:
    shown = _quote(wanted)
    if found:
        return f"Several folders of {_quote(repository)} are called {shown}: {_list(found)}. Write more of the path."
    if any(path == wanted or path.endswith(f"/{wanted}") for path in files):
        return f"{shown} is a file of {_quote(repository)}. Name its folder."
    by_name = {each.rpartition("/")[2].lower(): each for each in reversed(known)}
    names = difflib.get_close_matches(wanted.rpartition("/")[2].lower(), by_name, n=_MOST_NEAR)
    near = [by_name[name] for name in names] or difflib.get_close_matches(wanted, known, n=_MOST_NEAR)
    if near:
        return f"There is no folder {shown} in {_quote(repository)}. The nearest: {_list(near)}."
    tops = sorted(each for each in known if "/" not in each)
    hint = f" It has {_list(tops)}." if tops else ""
    return f"There is no folder {shown} in {_quote(repository)}.{hint}"


def _list(folders: Sequence[str]) -> str:
    more = f" and {len(folders) - 8} more" if len(folders) > 8 else ""
    return ", ".join(map(_quote, folders[:8])) + more


def _quote(name: str) -> str:
    return f"`{to_one_line(name).replace('`', '')}`"
