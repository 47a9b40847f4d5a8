"""A source in each language that is parsed: what it defines, uses, imports and inherits from.

`sources/expected.txt` holds what is found in each file of the folder; `python -m tests.indexer.parsing.test_sources`
prints it, to be read by eye after a change of a query.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from indexer.parsing.file_parser import parse_file
from indexer.parsing.grammars import GRAMMARS
from indexer.text.languages import detect_language

SOURCES = Path(__file__).parent / "sources"
EXPECTED = SOURCES / "expected.txt"


def describe(path: Path) -> str:
    """What is found in a file, a line for each: definitions with their documentation, uses with what they are in."""
    parsed = parse_file(path.name, path.read_text(encoding="utf-8"))
    defined = (
        f"{one.qualified_name}:{one.start_line}-{one.end_line} {one.kind}" + (f": {one.doc}" if one.doc else "")
        for one in parsed.symbols
    )
    used = (
        f"{f'{one.qualifier}.' if one.qualifier else ''}{one.name}:{one.line} {one.kind}"
        + (f" in {one.scope}" if one.scope else "")
        for one in parsed.references
    )
    imported = (
        f"{one.module} {one.name}".strip() + f":{one.line} import" + (f" as {one.alias}" if one.alias else "")
        for one in parsed.imports
    )
    return "\n".join([f"== {path.name} {parsed.language}", *defined, *used, *imported, ""])


def list_sources() -> list[Path]:
    return sorted(path for path in SOURCES.iterdir() if path != EXPECTED)


def read_expected() -> dict[str, str]:
    blocks = EXPECTED.read_text(encoding="utf-8").split("== ")[1:]
    return {block.split(" ", 1)[0]: f"== {block}" for block in blocks}


@pytest.mark.parametrize("path", list_sources(), ids=lambda path: path.name)
def test_definitions_uses_and_imports_of_a_source_are_found(path: Path) -> None:
    if detect_language(path.name, "") not in GRAMMARS:
        pytest.skip("its grammar is not installed: it is one of the extra `languages`")
    assert describe(path) == read_expected()[path.name]


if __name__ == "__main__":
    sys.stdout.write("".join(map(describe, list_sources())))
