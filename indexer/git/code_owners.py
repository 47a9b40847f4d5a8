"""Finds the owners of a path in a CODEOWNERS file, whose last matching pattern wins."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

from indexer.errors import BadPattern
from indexer.text.globs import compile_globs
from indexer.types import CodeOwners, Location

# Where hosts look for the file; the first that is there counts.
OWNERS_FILES = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS")
_MAX_RULES = 5_000
_LONGEST_LINE = 2_000  # characters
_MAX_OWNERS = 20


def find_owners(text: str, path: str, *, file: str) -> CodeOwners | None:
    """Find the CODEOWNERS rule for a path; None if there is none, or it names nobody."""
    is_match = cache(partial(_is_match, path=path))  # a pattern may stand there many times
    for line, pattern, owners in reversed(list(_read_rules(text))):
        if is_match(pattern):
            at = Location(path=file, start_line=line, end_line=line)
            return CodeOwners(location=at, pattern=pattern, owners=owners) if owners else None
    return None


def _read_rules(text: str) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """Read the lines with a pattern: number, pattern and owners.

    GitLab's section headings may name owners for the lines below them.
    """
    by_section: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n")[:_MAX_RULES], 1):
        bare = line[:_LONGEST_LINE].partition(" #")[0].strip()
        if bare.startswith(("[", "^[")):
            by_section = tuple(map(_format_owner, bare.rpartition("]")[2].split()[:_MAX_OWNERS]))
        elif bare and not bare.startswith(("#", "!")):
            pattern, *owners = bare.replace("\\ ", "\0").split()
            named = tuple(map(_format_owner, owners[:_MAX_OWNERS]))
            yield number, pattern.replace("\0", "\\ "), named or by_section


def _is_match(pattern: str, path: str) -> bool:
    """Whether a pattern matches a path: as in `.gitignore`, except that `docs/*` does not reach into folders."""
    try:
        is_match = compile_globs([pattern]).match_file(path)
    except BadPattern:
        return False
    is_flat = pattern.endswith("/*") and "**" not in pattern
    return bool(is_match) and not (is_flat and path.count("/") != pattern.strip("/").count("/"))


def _format_owner(owner: str) -> str:
    """Keep the name of a person or a team, and of an email address the part before the @."""
    return owner if owner.startswith("@") else owner.partition("@")[0]
