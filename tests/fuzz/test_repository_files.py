"""Files of a repository: their bytes, their names, what they hold, and what they say of each other."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indexer.errors import BadPattern
from indexer.generations.grep import grep_texts
from indexer.git.file_selection import FileSelection, judge_content, judge_path
from indexer.git.gitattributes import FileAttributes, GitAttributes, is_attributes_file, list_attribute_files
from indexer.parsing.file_parser import LONG_LINE_CUT, parse_file
from indexer.secrets import redact_secrets
from indexer.text.decoding import decode_file
from indexer.text.globs import compile_globs
from indexer.text.languages import detect_language
from indexer.text.tokens import split_identifier, tokenize, tokenize_identifier, tokenize_path, tokenize_question
from tests.fuzz.texts import among

paths = among(
    (
        "src/", "../", "./", "/", "a", ".py", ".env", "vendor/", ".gitattributes", "*", "Makefile",
        ".min.js", "README", "é", " ",
    ),
    most=6,
)  # fmt: skip
code = among(
    (
        "def ", "class ", "function ", "fn ", "func ", "public ", "static ", "struct ", "impl ",
        "namespace ", "template<", "import a\n", "from a import b\n", "#include <a.h>\n",
        "package a\n", "name", "Name", "(", ")", "{", "}", "[", "]", "<", ">", ":", ";", ",", "=",
        "=>", "->", "::", ".", "\n", "\n    ", "\n\n", "\t", '"', "'", "`", '"""', "/*", "*/", "//",
        "#", "--", "#!/bin/sh\n", "end\n", "do\n", "return ", "if ", "else ", "@decorator\n",
        "<?php\n", "$x", "/** First. */\n", "# Title\n", "===\n", "```\n",
    ),
    most=60,
)  # fmt: skip
SUFFIXES = (
    ".py .js .ts .tsx .go .rs .java .kt .scala .c .h .cpp .cs .rb .php .swift .lua .sh .hs .ex .zig .md .rst .txt .json"
).split()


@given(
    st.binary(max_size=300)
    | code.map(lambda text: text.encode("utf-8", "replace"))
    | code.map(lambda text: text.encode("utf-16"))
)
def test_bytes_become_text_that_can_be_stored_or_nothing(data: bytes) -> None:
    text = decode_file(data)

    if text is not None:
        assert text.encode("utf-8").decode("utf-8") == text
        assert "\0" not in text
        assert "\r\n" not in text


@given(st.sampled_from(SUFFIXES), code)
@settings(max_examples=settings().max_examples * 3, suppress_health_check=[HealthCheck.too_slow])
def test_a_file_becomes_chunks_that_hold_every_line_once(suffix: str, text: str) -> None:
    text = text.replace("\r\n", "\n").replace("\0", "")
    parsed = parse_file(f"src/file{suffix}", text)
    lines = text.split("\n")

    ends = [0]
    for chunk in parsed.chunks:
        assert ends[-1] < chunk.start_line <= chunk.end_line <= len(lines)
        whole = "\n".join(lines[chunk.start_line - 1 : chunk.end_line])
        assert chunk.text in {whole, whole[:LONG_LINE_CUT]}
        ends.append(chunk.end_line)
    held = {line for chunk in parsed.chunks for line in range(chunk.start_line, chunk.end_line + 1)}
    assert [line for number, line in enumerate(lines, 1) if line.strip() and number not in held] == []
    for symbol in parsed.symbols:
        assert 1 <= symbol.start_line <= symbol.end_line <= len(lines)


globs = among(
    ("*", "**/", "/**", "?", "[", "]", "[!a]", "[a-z]", "\\", "!", "#", "a", "/", ".py", "{", "}", "(", "+", "^", "-"),
    most=8,
)
attributes = among(
    (
        "*.py ", "linguist-generated", "-linguist-generated", "linguist-vendored=false", "=true", " ",
        "\n", "#", '"', "[attr]x", "!", "working-tree-encoding=", "koi8-r", "\ncharset = ",
    ),
    most=12,
)  # fmt: skip


@given(
    st.dictionaries(
        st.sampled_from([".gitattributes", "a/.gitattributes", ".editorconfig"]),
        st.lists(st.tuples(globs, attributes), max_size=5),
    ),
    paths,
)
def test_attributes_of_a_repository_say_something_or_nothing(
    files: dict[str, list[tuple[str, str]]], path: str
) -> None:
    texts = {name: "\n".join(f"{glob} {said}" for glob, said in lines) for name, lines in files.items()}
    marks = GitAttributes(texts).of(path)

    assert isinstance(marks, FileAttributes)
    looked_for = list_attribute_files([path.encode("utf-8", "replace")])
    assert all(is_attributes_file(name.decode()) for name in looked_for)


@given(st.lists(globs, max_size=4), paths)
def test_a_glob_is_refused_or_matches(written: list[str], path: str) -> None:
    try:
        compile_globs(written)
    except BadPattern:
        return
    assert isinstance(FileSelection(include=written).is_selected(path), bool)


@given(paths, st.binary(max_size=100) | code.map(str.encode), st.integers(0, 10**9))
def test_a_file_is_indexed_or_there_is_a_reason(path: str, data: bytes, size: int) -> None:
    for reason in (judge_path(path, size), judge_content(path, data)):
        assert reason is None or reason
    language = detect_language(path, data.decode("latin-1"))
    assert language
    assert language == language.lower()


secrets = among(
    (
        "password = ",
        "dbPassword: ",
        "api_key=",
        '"',
        "'",
        "hunter2Hunter2",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_" + "a1B2" * 9,
        "Bearer ",
        "-----BEGIN RSA PRIVATE KEY-----\n",
        "-----END RSA PRIVATE KEY-----",
        "https://ann:s3cretpw@host/x",
        "\n",
        " ",
        ";",
        "export ",
        "<password>",
        "</password>",
        "xoxb-1234567890-abcdefghij",
        "=",
        ":",
        "{",
        "}",
        ",",
    )
)


@given(secrets)
def test_masking_keeps_the_lines_and_is_done_once(text: str) -> None:
    masked = redact_secrets(text)

    assert masked.count("\n") == text.count("\n")
    assert redact_secrets(masked).count("\n") == text.count("\n")
    assert "AKIAIOSFODNN7EXAMPLE" not in masked or "AKIAIOSFODNN7EXAMPLE" in text


@given(
    among(
        (
            "a", "(", ")", "[", "]", "{2}", "{1000}", "*", "+", "?", "|", "^", "$", "\\b", "\\1",
            "(?i)", "(?=", "\\C", ".", "\n",
        ),
        most=10,
    ),
    st.lists(st.tuples(paths, code | st.text(st.characters(), max_size=20)), max_size=3),
)  # fmt: skip
def test_a_pattern_of_a_model_is_refused_or_finds_lines(pattern: str, texts: list[tuple[str, str]]) -> None:
    try:
        found = grep_texts(texts, pattern, limit=20)
    except BadPattern:
        return
    assert len(found.lines) <= 20
    by_path = dict(texts)
    for match in found.lines:
        assert 1 <= match.location.start_line <= max(text.count("\n") for path, text in texts if path in by_path) + 1
        assert "\n" not in match.text


@given(code | paths | st.text())
def test_text_becomes_words(text: str) -> None:
    for words in (tokenize(text), tokenize_path(text), tokenize_question(text), split_identifier(text)):
        assert all(words) or not words
    assert not any("\n" in word for word in tokenize(text))
    assert isinstance(tokenize_identifier(text), tuple)
