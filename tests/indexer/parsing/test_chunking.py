"""Chunks: whatever a file holds, they are in order, do not overlap and hold every line that is not blank."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from indexer.parsing.file_parser import CHUNK_LIMIT, LONG_LINE_CUT, parse_file
from indexer.types import ParsedFile

PATHS = [
    "a.py",
    "a.js",
    "a.tsx",
    "a.go",
    "a.rs",
    "A.java",
    "a.c",
    "a.cpp",
    "a.rb",
    "a.php",
    "a.sh",
    "a.hs",
    "a.md",
    "a.txt",
]

PYTHON_FUNCTION = '''\
@decorator
def function_{0}(argument, other=None):
    """Describe what number {0} does, in a sentence that takes some room."""
    for item in argument:
        if item.matches(other):
            yield item.value({0})
'''

REAL = '''\
# A comment above.
@register("é", size=[1, 2, {"a": (3, 4)}])
class Foo(Base):
    """A docstring
    over lines."""

    LIMIT = """text
	with a tab"""

    def run(self, x: int = 1) -> str:
        return f"{x!r:>{self.width}}" if x else self.stop()


async def main(): await Foo().run()  # 日本語
'''


def assert_chunks_cover(text: str, parsed: ParsedFile) -> None:
    """Check the promise that every file's chunks keep."""
    lines = text.split("\n")
    end = 0
    for chunk in parsed.chunks:
        assert end < chunk.start_line <= chunk.end_line <= len(lines)
        assert not any(line.strip() for line in lines[end : chunk.start_line - 1])
        whole = "\n".join(lines[chunk.start_line - 1 : chunk.end_line])
        if chunk.start_line == chunk.end_line:
            assert chunk.text == whole[:LONG_LINE_CUT]
        else:
            assert chunk.text == whole
            assert len(chunk.text) <= CHUNK_LIMIT
        end = chunk.end_line
    assert not any(line.strip() for line in lines[end:])


def assert_symbols_are_placed(text: str, parsed: ParsedFile) -> None:
    """Check that symbols lie within the file and that each begins in exactly one chunk."""
    last = text.count("\n") + 1
    assert all(1 <= s.start_line <= s.end_line <= last for s in parsed.symbols)
    assert all(1 <= r.line <= last for r in parsed.references)
    assert sorted(n for chunk in parsed.chunks for n in chunk.names) == sorted(s.name for s in parsed.symbols)


@settings(deadline=None)  # the first file of a language pays for its grammar
@given(path=st.sampled_from(PATHS), text=st.text(max_size=300))
@example(path="a.py", text="x = (\x00\ndef f(): pass")
@example(path="a.py", text="\ufeff\ufeffdef f(): pass\x85\u2028b")
@example(path="a.md", text="# a\n```\n# b\n")
def test_chunks_cover_any_text(path: str, text: str) -> None:
    parsed = parse_file(path, text)

    assert_chunks_cover(text, parsed)
    assert_symbols_are_placed(text, parsed)


SYNTAX = st.lists(
    st.sampled_from([*"(){}[]<>\"'`#:;,.=\\\n\t @$", "\n", "\n  ", "def f", "class A", "fn ", "/*", "*/", "//", "é"])
)


@settings(deadline=None)
@given(path=st.sampled_from(PATHS), pieces=SYNTAX)
def test_chunks_cover_what_looks_like_code(path: str, pieces: list[str]) -> None:
    text = "".join(pieces)
    parsed = parse_file(path, text)

    assert_chunks_cover(text, parsed)
    assert_symbols_are_placed(text, parsed)


@settings(max_examples=60, deadline=None)
@given(path=st.sampled_from(PATHS), times=st.integers(1, 12), cut=st.data())
def test_chunks_cover_damaged_code(path: str, times: int, cut: st.DataObject) -> None:
    whole = REAL * times
    start = cut.draw(st.integers(0, len(whole)))
    text = whole[:start] + cut.draw(st.text(max_size=8)) + whole[start + cut.draw(st.integers(0, 60)) :]
    parsed = parse_file(path, text)

    assert_chunks_cover(text, parsed)
    assert_symbols_are_placed(text, parsed)


@pytest.mark.parametrize("path", ["a.py", "a.md", "a.txt", "a.json"])
@pytest.mark.parametrize("text", ["", "  \n\t\n\f\n"])
def test_a_file_without_words_has_no_chunks(path: str, text: str) -> None:
    parsed = parse_file(path, text)

    assert parsed.chunks == ()
    assert parsed.symbols == ()


def test_a_last_line_without_line_end_is_kept() -> None:
    (chunk,) = parse_file("a.py", "\n\nx = 1\n\ny = 2").chunks

    assert (chunk.start_line, chunk.end_line, chunk.text) == (3, 5, "x = 1\n\ny = 2")


@pytest.mark.parametrize("path", ["a.js", "a.txt", "a.md"])
def test_a_line_of_a_megabyte_is_one_chunk_cut_short(path: str) -> None:
    parsed = parse_file(path, "x=f(1);" * 150_000)

    (chunk,) = parsed.chunks
    assert (chunk.start_line, chunk.end_line, len(chunk.text)) == (1, 1, LONG_LINE_CUT)
    assert parsed.symbols == ()


def test_a_huge_line_within_code_stands_alone() -> None:
    text = f"def one():\n    pass\n\nDATA = '{'x' * 9000}'\n\n\ndef two():\n    pass\n"

    parsed = parse_file("a.py", text + "# more\n" * 40)

    assert_chunks_cover(text + "# more\n" * 40, parsed)
    assert [(c.start_line, c.end_line, len(c.text)) for c in parsed.chunks if "DATA" in c.names] == [(4, 4, 4000)]
    assert [symbol.name for symbol in parsed.symbols] == ["one", "DATA", "two"]


@pytest.mark.parametrize("path", ["a.py", "a.js", "a.c"])
@pytest.mark.parametrize(
    "text", ["[" * 10_000 + "]" * 10_000, "(\n" * 10_000, "f(" * 3000, "if a:\n" * 3000, "}\n" * 3000]
)
def test_deep_nesting_is_cut_without_recursion(path: str, text: str) -> None:
    assert_chunks_cover(text, parse_file(path, text))


def test_long_chains_of_calls_take_bounded_time() -> None:
    text = "a\n" + "  .then(b)\n" * 20_000

    parsed = parse_file("a.rb", text)

    assert_chunks_cover(text, parsed)
    assert parsed.references


def test_a_tree_of_errors_is_cut_by_size() -> None:
    text = "?? this is no code; at all >> %%\n" * 200

    parsed = parse_file("a.go", text)

    assert_chunks_cover(text, parsed)
    assert min(len(chunk.text) for chunk in parsed.chunks) > CHUNK_LIMIT / 2


def test_whole_functions_share_a_chunk_while_they_fit() -> None:
    text = "\n\n".join(PYTHON_FUNCTION.format(number) for number in range(20))

    chunks = parse_file("a.py", text).chunks

    assert all(chunk.text.startswith("@decorator\ndef ") for chunk in chunks)
    assert all(chunk.scope == "" for chunk in chunks)
    assert [name for chunk in chunks for name in chunk.names] == [f"function_{number}" for number in range(20)]
    assert min(len(chunk.text) for chunk in chunks[:-1]) > CHUNK_LIMIT / 2


def test_a_comment_goes_with_the_definition_below_it() -> None:
    function = (
        "// F{0} is number {0}.\n// It has a comment of its own.\nfunc F{0}() int {{\n" + "\tstep()\n" * 120 + "}}\n\n"
    )

    chunks = parse_file("a.go", "package a\n\n" + "".join(function.format(number) for number in range(9))).chunks

    assert [chunk.text.split("\n")[0] for chunk in chunks[1:]] == [
        f"// F{number} is number {number}." for number in range(1, 9)
    ]


def test_a_class_head_stays_with_its_first_lines() -> None:
    filler = "x = 1\n" * 200
    methods = "".join(f"    def method_{number}(self):\n" + "        self.step()\n" * 30 for number in range(6))
    text = f'{filler}\n\n@decorator\nclass Foo(Base):\n    """Doc."""\n\n{methods}'

    chunks = parse_file("a.py", text).chunks

    (head,) = [chunk for chunk in chunks if "Foo" in chunk.names]
    assert head.text.startswith("@decorator\nclass Foo(Base):")
    assert "method_0" in head.names


def test_a_chunk_knows_the_definition_that_it_begins_in() -> None:
    body = "".join(f"        value_{number} = compute({number})\n" for number in range(120))
    text = f"class Foo:\n    def run(self):\n{body}\n    def stop(self):\n{body}"

    chunks = parse_file("a.py", text).chunks

    assert chunks[0].scope == ""
    assert {chunk.scope for chunk in chunks[1:] if "stop" not in chunk.names} == {"Foo.run", "Foo.stop"}
    assert [chunk.scope for chunk in chunks if chunk.names == ("stop",)] == ["Foo"]


def test_documents_are_cut_at_headings() -> None:
    sections = "".join(f"# Part {number}\n\n" + "Some words on it.\n" * 60 + "\n" for number in range(4))

    chunks = parse_file("a.md", f"{sections}# Part 4\nA short one.").chunks

    assert [chunk.text.split("\n")[0] for chunk in chunks] == [f"# Part {number}" for number in range(5)]


def test_short_sections_share_a_chunk() -> None:
    text = "".join(f"## Part {number}\n\nA few words.\n\n" for number in range(10))

    (chunk,) = parse_file("a.md", text).chunks

    assert (chunk.start_line, chunk.end_line) == (1, 39)


def test_comments_in_a_code_fence_are_no_headings() -> None:
    text = "# Part\n\n" + "Words.\n" * 100 + "```sh\n# not a heading\nls\n```\n"

    (chunk,) = parse_file("a.md", text).chunks

    assert chunk.text == text.rstrip("\n")


def test_underlined_titles_begin_a_chunk_with_their_overline() -> None:
    text = "Intro\n=====\n\n" + "Words words.\n" * 60 + "\n=====\nTitle\n=====\n\n" + "More words.\n" * 60

    chunks = parse_file("a.rst", text).chunks

    assert [chunk.text.split("\n")[0] for chunk in chunks] == ["Intro", "====="]


def test_plain_text_is_cut_at_blank_lines() -> None:
    paragraph = "A line of text that goes on for a while.\n" * 9 + "\n"

    chunks = parse_file("a.txt", paragraph * 12).chunks

    assert all(chunk.text.count("\n") % 10 == 8 for chunk in chunks)
    assert all(CHUNK_LIMIT / 2 < len(chunk.text) <= CHUNK_LIMIT for chunk in chunks)


def test_files_without_a_grammar_have_chunks_only() -> None:
    parsed = parse_file("a.toml", "[tool]\nname = 'x'\n")

    assert parsed.language == "toml"
    assert [chunk.text for chunk in parsed.chunks] == ["[tool]\nname = 'x'"]
    assert (parsed.symbols, parsed.references, parsed.imports) == ((), (), ())


def test_parsing_twice_gives_the_same() -> None:
    assert parse_file("a.py", REAL * 20) == parse_file("a.py", REAL * 20)
