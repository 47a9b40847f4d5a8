"""Puts definitions and places in the order that a reader wants: the code itself before its tests, examples and docs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch

from agent.state import EvidenceRef
from indexer.models import Definition

_SIDE_FOLDER = re.compile(
    r"(?:^|/)(?:tests?|testing|__tests__|spec|specs|mocks?|__mocks__|fixtures?|examples?|samples?|demos?|benches|benchmarks?|docs?|www)(?:/|$)",
    re.IGNORECASE,
)
_SIDE_FILE = re.compile(
    r"(?:^|/)(?:test_[^/]*|conftest\.py|mocks?\.\w+|[^/]*(?:_test|_spec|\.test|\.spec|[a-z]Tests?)\.\w+|[^/]*\.(?:md|rst|txt|adoc))$"
)


def is_test_or_docs(path: str) -> bool:
    """Whether a file is about the code rather than the code itself: a test, an example, a mock, documentation."""
    return bool(_SIDE_FILE.search(path) or _SIDE_FOLDER.search(path))


def sort_code_first(refs: Iterable[EvidenceRef]) -> list[EvidenceRef]:
    """Put the code before what is beside it, each in its order."""
    return sorted(refs, key=lambda ref: is_test_or_docs(ref["path"]))


def sort_definitions(definitions: Sequence[Definition], patterns: Sequence[str]) -> list[Definition]:
    """Order definitions of one name: where the patterns say, the code first, the outer first; overloads only once."""
    fitting = [one for one in definitions if _is_pattern_match(one.path, patterns)]
    longest: dict[tuple[str, str], Definition] = {}
    for one in fitting or definitions:
        key = (one.path, one.symbol.qualified_name)
        held = longest.get(key)
        if held is None or _length(one) > _length(held):
            longest[key] = one
    # A name that is written with its module (`tokio::spawn`) is no method.
    return sorted(
        longest.values(), key=lambda one: (is_test_or_docs(one.path), bool(patterns) and one.symbol.kind == "method")
    )


def _is_pattern_match(path: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatch(f"/{path}".lower(), pattern.lower()) for pattern in patterns)


def _length(definition: Definition) -> int:
    return definition.symbol.end_line - definition.symbol.start_line
