"""The language of a file by name, shebang and content."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from indexer.parsing import grammars
from indexer.parsing.grammars import GRAMMARS, load_query
from indexer.parsing.installed import count_unparsed, list_languages
from indexer.text.languages import LANGUAGES, Language, detect_language, find_language, find_language_by_ending
from indexer.types import Unparsed
from tests.waiting import LIMIT_SECONDS

QUERIES = Path(grammars.__file__).parent / "queries"


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("src/app.py", "python"),
        ("a.d.ts", "typescript"),
        ("A.JAVA", "java"),
        ("README.md", "markdown"),
        ("Cargo.lock", "toml"),
        ("Makefile", "makefile"),
        ("docker/Dockerfile.dev", "dockerfile"),
        ("CMakeLists.txt", "cmake"),
        (".gitignore", "text"),
        ("LICENSE", "text"),
        ("", "text"),
    ],
)
def test_a_name_tells_the_language(path: str, language: str) -> None:
    assert detect_language(path, "") == language


@pytest.mark.parametrize(
    ("first_line", "language"),
    [
        ("#!/usr/bin/env python3", "python"),
        ("#!/bin/sh", "bash"),
        ("#! /bin/bash -e", "bash"),
        ("#!/usr/bin/env -S node --harmony", "javascript"),
        ("#!/usr/bin/env LANG=C ruby", "ruby"),
        ("# !/bin/sh", "text"),
    ],
)
def test_a_shebang_tells_where_the_name_does_not(first_line: str, language: str) -> None:
    assert detect_language("bin/tool", first_line + "\n") == language


def test_a_suffix_outweighs_the_shebang() -> None:
    assert detect_language("tool.py", "#!/bin/sh\n") == "python"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("#include <stdio.h>\nint add(int a, int b);\n", "c"),
        ("/* using\n * class of\n   virtual memory, template of\n   public: */\nint x;\n", "c"),
        ("#include <vector>\n", "cpp"),
        ("class Shape : public Base {\n", "cpp"),
        ("template <typename T>\nT max(T a);\n", "cpp"),
        ("using namespace std;\n", "cpp"),
        ("std::string name();\n", "cpp"),
        ("@interface Foo : NSObject\n@end\n", "objective-c"),
        ("", "c"),
    ],
)
def test_a_header_is_judged_by_what_it_says(text: str, language: str) -> None:
    assert detect_language("include/a.h", text) == language


def test_a_language_is_found_by_all_that_the_table_says_of_it() -> None:
    found = [
        (language.name, find_by_table(language)) for language in LANGUAGES if language.endings or language.file_names
    ]
    assert found == [(language.name, {language.name}) for language in LANGUAGES]


def find_by_table(language: Language) -> set[str]:
    """The languages of everything by which this one is to be found."""
    by_ending = [find_language_by_ending(ending) for ending in language.endings]
    return {
        *(each.name for each in [find_language(language.name), *by_ending] if each),
        *(detect_language(f"src/a.{ending}", "") for ending in language.endings),
        *(detect_language(f"src/{name}", "") for name in language.file_names),
        *(detect_language("bin/tool", f"#!/usr/bin/env {program}\n") for program in language.interpreters),
    }


def test_a_parsed_language_has_every_part() -> None:
    """Without a spoken name nobody asks for it, and without its comments none above a definition is found."""
    parsed = {name: find_language(name) for name in GRAMMARS}

    assert [name for name, language in parsed.items() if not (language and language.spoken_names)] == []
    assert [name for name, language in parsed.items() if not (language and language.line_comments)] == []
    assert [name for name in GRAMMARS if "@call" not in load_query(GRAMMARS[name].query)] == []


def test_importing_the_chunker_loads_no_grammar() -> None:
    program = "import sys, indexer.parsing.file_parser; print([m for m in sys.modules if m.startswith('tree_sitter_')])"

    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=LIMIT_SECONDS
    )

    assert loaded.stdout.strip() == "[]"


def test_the_table_says_what_is_found_in_each_language() -> None:
    found = {row.name: row.found for row in list_languages()}

    assert found["SQL"] == "definitions, uses of names, imports"
    assert found["Vue"] == "the code in it, and uses in its markup"
    assert found["csv"] == "words"


def test_the_extra_is_named_only_for_grammars_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexer.parsing.installed.is_installed", lambda _: False)
    found = {row.name: row.found for row in list_languages()}

    assert found["SQL"] == "words; definitions with the extra `languages`"
    assert found["GraphQL"] == "words (no grammar for this system)"


def test_what_a_missing_grammar_leaves_out_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    groovy = find_language("groovy")
    assert groovy is not None
    monkeypatch.setattr("indexer.parsing.installed.is_installed", lambda grammar: grammar is not groovy.grammar)

    monkeypatch.setattr("indexer.parsing.installed.find_ctags_version", str)

    assert count_unparsed(["python", "groovy", "tcl", "groovy", "csv"]) == (
        Unparsed(language="Groovy", files=2, reason="grammar"),
        Unparsed(language="Tcl", files=1, reason="ctags"),
    )
    assert {row.name: row.found for row in list_languages()}["Tcl"] == "words; definitions with universal-ctags"


def test_the_page_of_languages_names_every_language_that_is_parsed() -> None:
    page = Path("docs/languages.md").read_text(encoding="utf-8")

    assert [one.name for one in LANGUAGES if one.grammar and one.spoken_names[0] not in page] == []
