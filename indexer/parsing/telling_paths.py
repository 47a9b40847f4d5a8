"""The part of a path that parsing depends on, so that equal contents are parsed once, wherever they are."""

from __future__ import annotations

from indexer.text.languages import is_well_known
from indexer.text.linear_patterns import compile_pattern

# Where one of these words is in a path, it may tell what the file registers: `indexer.parsing.registrations` looks.
_TELLING = compile_pattern(
    r"(?i)changelog|changes|history|migrat|upgrad|release|news|conf|option|setting|default|env|signals|events|commands/"
    r"|pages/api/|(?:^|/)app/.*route\.|(?:^|/)\.(?:github|gitea|forgejo)/workflows/|\.gitlab|\.circleci/|cron|(?:^|/)values[^/]*\.ya?ml$|templates/.*\.ya?ml$"
)
COMPONENT_ENDINGS = (".vue", ".svelte", ".astro", ".razor")  # of files that are named after what they define
_BUILD_FILES = frozenset({"configure.ac", "configure.in"})


def reduce_path(path: str) -> str:
    """Return a path that parses alike: the whole path if it matters, else a name with the same ending."""
    name = path.rpartition("/")[2]
    if name.lower().endswith(COMPONENT_ENDINGS):
        return name
    if _TELLING.search(path) or is_well_known(name) or name.lower() in _BUILD_FILES:
        return path
    _, dot, ending = name.partition(".")
    return f"x{dot}{ending}" if not name.startswith(".") else name
