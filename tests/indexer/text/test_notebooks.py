"""Notebooks: what people wrote, at the lines that it has in the file, without outputs."""

from __future__ import annotations

import json

from indexer.parser_pool.wire_format import ParsedContents, Request, SkippedFile
from indexer.parser_pool.worker import parse_source
from indexer.parsing.file_parser import parse_file
from indexer.text.decoding import unpack
from indexer.text.notebooks import describe_cells, read_notebook

PLOT = {"data": {"image/png": "iVBORw0KGgo" * 300_000}, "output_type": "display_data", "metadata": {}}
CODE = ["%matplotlib inline\n", "def train(x):\n", "    return fit(x)\n", "!ls"]


def notebook(source: list[str] | str, *, indent: int | None = 1, language: str = "python") -> str:
    cells = [
        {"cell_type": "markdown", "metadata": {"source": ["no\n"]}, "source": ["# Churn\n", "Some *prose*"]},
        {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [PLOT], "source": source},
        {"cell_type": "code", "execution_count": 2, "metadata": {}, "outputs": [], "source": ["train(1)"]},
    ]
    kernel = {"kernelspec": {"language": language, "name": "x"}}
    return json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4}, indent=indent)


def test_cells_keep_the_lines_of_the_file_and_outputs_are_left_out() -> None:
    raw = notebook(CODE)

    contents = parse_source(Request(path="a.ipynb", data=raw.encode()), seconds=3.0)

    assert isinstance(contents, ParsedContents)
    lines, written = unpack(contents.packed).split("\n"), raw.split("\n")
    assert len(lines) == len(written) == contents.lines + 1  # nothing is left of the last line
    assert [line for line in lines if line] == [
        "# %% cell 1 [markdown]", "# Churn", "Some *prose*",
        "# %% cell 2", *(line.rstrip("\n") for line in CODE),
        "# %% cell 3", "train(1)",
    ]  # fmt: skip
    (train,) = contents.parsed.symbols
    assert (train.name, contents.parsed.language) == ("train", "python")
    assert "def train(x):" in written[train.start_line - 1]
    assert [(use.name, use.line) for use in contents.parsed.references] == [
        ("fit", train.end_line),
        ("train", 1 + lines.index("train(1)")),
    ]


def test_lines_are_named_by_their_cells() -> None:
    text = read_notebook(notebook(CODE)) or ""
    first = 1 + text.split("\n").index("def train(x):")

    assert describe_cells(text, first, first + 1) == "cell 2, lines 2-3"
    assert describe_cells(text, first, first) == "cell 2, line 2"
    assert describe_cells(text, 1, 10_000) == "cells 1-3"
    assert describe_cells(text, 1, 1) == ""


def test_a_cell_on_one_line_is_read_and_named_whole() -> None:
    text = read_notebook(notebook("".join(CODE))) or ""
    line = next(number for number, each in enumerate(text.split("\n"), 1) if "def train" in each)
    parsed = parse_file("a.ipynb", text)

    assert [(one.name, one.start_line, one.end_line) for one in parsed.symbols] == [("train", line, line)]
    assert describe_cells(text, line, line) == "cell 2"


def test_a_notebook_on_one_line_in_another_language_or_broken_is_still_text() -> None:
    assert "def train" in (read_notebook(notebook(CODE, indent=None)) or "")
    assert "# %% cell 2 [julia]" in (read_notebook(notebook(CODE, language="julia")) or "")
    assert read_notebook('{"cells": [') is None
    assert read_notebook("[" * 100_000) is None
    skipped = parse_source(Request(path="a.ipynb", data=b"[" * 2_000_000), seconds=3.0)
    assert skipped == SkippedFile(reason="too large")


def test_odd_strings_forge_no_marks_and_shift_no_lines() -> None:
    source = ["a = '\ud800\0'\n", "# %% cell 9 [markdown]\n", "def train(x):\n", "    pass\r\n"]
    raw = notebook(source, language="Wolfram\nLanguage\ud800")
    text = read_notebook(raw) or ""
    lines = text.split("\n")

    assert len(lines) == raw.count("\n") + 1
    assert "# %% cell 2 [wolfram-language]" in lines
    assert "a = '\ufffd\ufffd'" in lines
    assert text.encode()
    assert "\r" not in text
    assert describe_cells(text, 1, len(lines)) == "cells 1-3"
    for hidden in (source, "[markdown] \ndef train(x):\n    pass"):
        parsed = parse_file("a.ipynb", read_notebook(notebook(hidden)) or "")
        assert [one.name for one in parsed.symbols if one.name == "train"] == ["train"]


def test_what_is_no_notebook_is_read_as_text() -> None:
    assert read_notebook('{"worksheets": [{"cells": 5}]}') == ""
    assert describe_cells("# %% cell " + "9" * 5_000, 1, 1) == ""


def test_an_old_notebook_has_its_cells_in_worksheets() -> None:
    cell = {"cell_type": "code", "input": ["old(1)"], "language": "python", "outputs": []}
    text = read_notebook(json.dumps({"nbformat": 3, "metadata": {}, "worksheets": [{"cells": [cell]}]}, indent=1))

    assert text is not None
    assert "old(1)" in text.split("\n")
