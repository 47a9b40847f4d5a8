"""Fuzzes files of several languages, schemas, manifests and lock files, declared encodings, and the tags of ctags."""

from __future__ import annotations

import json
from contextlib import closing, suppress

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indexer.parsing.containers import find_contents
from indexer.parsing.ctags import Ctags, CtagsEnded
from indexer.parsing.file_parser import parse_file
from indexer.parsing.packages import read_packages
from indexer.parsing.registrations.sql_statements import find_table_uses
from indexer.subprocesses import start_program
from indexer.text.decoding import decode_file
from indexer.text.languages import detect_language
from indexer.text.notebooks import describe_cells, read_cells, read_notebook
from tests.fuzz.texts import among, json_values

SLOW = settings(suppress_health_check=[HealthCheck.too_slow])
CONTAINERS = "vue svelte astro html component.html erb ejs j2 twig blade.php razor cshtml mdx md php".split()
markup = among(
    (
        "<script", "<script>", "</script>", ' lang="ts"', ' type="module"', "<!--", "-->", "<template>", "<style>",
        "---\n",
        "{{", "}}", "{!!", "!!}", "{%", "%}", "{#", "<%", "<%=", "<%#", "%>", "<?php ", "?>", "@code {",
        "@functions{",
        "@if(", "@foreach", "@php", "@endphp", "@Name(", "@(", "@{", "<MyPart ", "<x-card ", ':size="', '@click="',
        "on:click={",
        "(event)=", "[prop]=", "*ngFor=", "{#if ", "{/if}", "{@html ", "import a from 'b'\n", "export ", "```js\n",
        "```\n",
        "~~~\n", "call(a)", "{", "}", "(", ")", '"', "'", "`", "$", "|filter", "\n", "\n\n", "macro name(a)",
        "block name", "/>", ">",
    ),
    most=40,
)  # fmt: skip


@given(st.sampled_from(CONTAINERS), markup)
@SLOW
def test_the_parts_of_a_container_lie_at_their_own_lines(ending: str, text: str) -> None:
    path = f"src/Card.{ending}"
    text = text.replace("\r", "").replace("\0", "")
    parsed = parse_file(path, text)
    language, last = detect_language(path, text), text.count("\n") + 1

    for part in find_contents(language, path, text).parts if language != "php" else ():
        assert 1 <= part.find_line(1) <= part.find_line(part.text.count("\n") + 1) <= last
    for symbol in parsed.symbols:
        assert 1 <= symbol.start_line <= symbol.end_line <= last
    lines = [one.line for one in parsed.references] + [one.line for one in parsed.imports]
    assert all(1 <= line <= last for line in [*lines, *(one.line for one in parsed.registrations)])


cells = json_values(
    ("cells", "source", "cell_type", "metadata", "language_info", "name", "worksheets", "input", "outputs"),
    st.sampled_from(["code", "markdown", "python", "def f():\n", "%time x", "!ls", "%%bash\n", "\n", "import a"]),
)


@given(cells.map(lambda value: json.dumps(value, indent=1)) | cells.map(json.dumps) | markup)
@SLOW
def test_a_notebook_is_read_with_its_lines_or_not_at_all(text: str) -> None:
    read = read_notebook(text)

    assert read is None or read.count("\n") == text.count("\n")
    for cell in read_cells(text) if read is not None else ():
        assert 0 <= cell.first_row <= cell.last_row <= text.count("\n")
    assert isinstance(describe_cells(read or "", 1, 3), str)


SCHEMAS = (
    "a.sql a.tf a.proto a.graphql a.prisma Dockerfile .env.example crontab docker-compose.yml"
    " .github/workflows/ci.yml"
    " openapi.yaml openapi.json asyncapi.yaml templates/a.yaml chart/values.yaml .gitlab-ci.yml"
    " db/migrate/1.rb a.flagd.json"
).split()
schema = among(
    (
        "CREATE TABLE a (", "INSERT INTO a ", "SELECT * FROM ", "JOIN b", "WITH x AS (", "-- ", "/*", "*/", ";\n",
        "GO\n",
        "$$", "'", '"', "`a`", "[a]", "{{ ref('a') }}", "{{- if .Values.x }}", "{%", "openapi: 3.0.0\n",
        "asyncapi: 2\n",
        "paths:\n", "  /a/{id}:\n", "    get:\n", "jobs:\n", "services:\n", "kind: Deployment\n",
        "metadata:\n  name: a\n",
        "env:\n", "- name: A_B\n", "  value: x\n", "&a", "*a", "<<: ", "!tag ", "|\n", "---\n",
        'resource "a" "b" {\n',
        "message A {\n", "service S {\n", "rpc F(A) returns (B);\n", "type Query {\n", "ENV A_B=c\n", "FROM a AS b\n",
        "A_B=c\n", "* * * * * run\n", "variation(", "enabled?(:a)", '{"flags": {', '"a": ', "[", "]", "{", "}", ",",
        ":", "\n",
    ),
    most=40,
)  # fmt: skip


@given(st.sampled_from(SCHEMAS), schema)
@SLOW
def test_what_a_schema_registers_is_on_its_lines(path: str, text: str) -> None:
    text = text.replace("\r", "").replace("\0", "")
    last = text.count("\n") + 1

    for found in parse_file(path, text).registrations:
        assert 1 <= found.line <= last
        assert "\n" not in found.name
    assert all(0 <= use.start <= len(text) for use in find_table_uses(text))


MANIFESTS = (
    "package.json package-lock.json composer.json composer.lock Pipfile.lock packages.lock.json"
    " pyproject.toml setup.py setup.cfg"
    " Pipfile Cargo.toml Cargo.lock yarn.lock pnpm-lock.yaml Gemfile.lock pubspec.yaml pubspec.lock"
    " requirements.txt go.mod go.sum"
    " Gemfile build.gradle libs.versions.toml pom.xml gradle.lockfile a.csproj mix.exs mix.lock"
).split()
manifest = among(
    (
        '"packages": {', '"node_modules/a": ', '"dependencies": {', '"version": "1.0"', "[[package]]\n",
        "[project]\n",
        "[tool.poetry.dependencies]\n", "dependencies = [\n", 'name = "a"\n', 'version = "1"\n', "a >= 1\n",
        "# via b\n", "a@^1:\n",
        "  version 1\n", "  dependencies:\n", "    b: 1\n", "GEM\n  specs:\n    a (1)\n", "a v1.0.0 h1:x=\n",
        "require (\n",
        "install_requires=[", "install_requires =\n", "<dependency>", "<groupId>g</groupId>",
        "<artifactId>a</artifactId>",
        "<java.version>17<", 'gem "a", "1"\n', "importers:\n", "lockfileVersion: 9\n", "{", "}", "[", "]", '"', "'",
        ",", ":", "=",
        "\n", "    ", "    - ", "\\", "==1.0 \\\n", "    --hash=sha256:0\n",
    ),
    most=40,
)  # fmt: skip


@given(st.sampled_from(MANIFESTS), manifest)
@SLOW
def test_packages_have_a_name_and_a_line(path: str, text: str) -> None:
    for found in read_packages(path, text):
        assert found.name
        assert 1 <= found.line <= text.count("\n") + 1
        assert max(map(len, (found.name, found.detail, found.handler))) <= 300


declared = among(
    (
        "# -*- coding: ", "# vim: set fileencoding=", "koi8-r", "utf-16", "utf-7", "cp1251", "shift_jis", "idna",
        "-*-\n",
        '<?xml encoding="', "<meta charset=", "rot13", "undefined", "unicode_escape", "\n",
    ),
    most=6,
)  # fmt: skip


@given(declared.map(lambda text: text.encode("utf-8", "replace")), st.binary(max_size=80), declared)
def test_a_declared_encoding_is_used_or_ignored(head: bytes, body: bytes, said: str) -> None:
    data = head + body
    text = decode_file(data, declared=said, usual=said)

    if text is not None:
        assert text.count("\n") >= data.count(b"\n") or b"\0" in data
        text.encode()


tags = json_values(
    ("_type", "name", "line", "end", "kind", "scope", "size"),
    st.sampled_from(["tag", "completed", "error", "function", "class", "a::b", "::", "operator ()"]),
)


@given(st.lists(tags.map(json.dumps) | st.text(max_size=20), max_size=6))
def test_tags_become_symbols_of_the_file_or_the_program_is_given_up(lines: list[str]) -> None:
    text = "\n".join([*(line.replace("\n", " ") for line in lines), '{"_type": "completed"}', ""])
    with closing(Ctags(start_program(["cat"]), "")) as program, suppress(CtagsEnded):
        for symbol in program.find_symbols("tcl", text, seconds=5):
            assert symbol.name
            assert 1 <= symbol.start_line <= symbol.end_line <= text.count("\n") + 1
