"""Fuzzes operators' files: citebot.toml, backups, batches of queries, the answers of a search server."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from agent.errors import WebSearchError
from agent.tools.web_search import SearxngSearch
from bot.access import AccessPolicy
from bot.cli.query import InvalidBatchLine, parse_batch_line
from bot.errors import SettingsError
from bot.maintenance.backup import NAME, InvalidBackup, open_archive, read_manifest
from bot.settings import Settings, list_file_keys
from tests.fuzz.texts import among, json_values, noise

toml = among(
    (
        *(f"{key} = " for key in list_file_keys()),
        "[access]\n",
        "[guard]\n",
        "[prices]\n",
        "[[repositories]]\n",
        "[[access.rules]]\n",
        "[repositories]\n",
        "path = ",
        "url = ",
        "name = ",
        "channels = ",
        "open = ",
        "people = ",
        "classifier = ",
        "classifier_ms = ",
        '"x"',
        '"none"',
        '"https://git.example.com/a/b"',
        "true",
        "false",
        "1",
        "-1",
        "0.5",
        "nan",
        "inf",
        "[]",
        '["a"]',
        "{}",
        "{ input = 1, output = 2 }",
        "1979-05-27",
        "\n",
        "=",
        '"',
        "[",
        "]",
        "'''",
        "9" * 400,
    ),
    most=16,
)
NO_PROBLEM = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@given(st.lists(toml, max_size=4).map("\n".join))
@settings(suppress_health_check=NO_PROBLEM)
def test_settings_are_read_or_refused_with_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "citebot.toml").write_text(text.encode("utf-8", "replace").decode(), encoding="utf-8")
    try:
        made = Settings.load({}, tmp_path)
    except SettingsError as error:
        assert str(error)
    else:
        assert isinstance(made, Settings)


@given(
    st.dictionaries(
        st.sampled_from(["open", "reindex", "external_channels", "rules", "x"]),
        json_values(("repositories", "channels", "people"), noise),
    )
)
def test_rules_of_access_are_understood_or_refused(table: dict[str, Any]) -> None:
    try:
        policy = AccessPolicy.model_validate(table)
    except ValidationError as error:
        assert error.error_count() > 0
    else:
        assert set(table) <= {"open", "reindex", "external_channels", "rules"}
        assert policy.open in {True, False}


DIGEST = "0" * 64
members = st.fixed_dictionaries(
    {
        "name": st.sampled_from(
            ["console_history", "inbox.sqlite", "../x", "/etc/passwd", "repositories/a/catalog.sqlite"]
        )
        | noise,
        "size": st.integers() | st.booleans() | noise,
        "sha256": st.sampled_from([DIGEST, "x"]) | st.integers(),
    }
)
lists = st.fixed_dictionaries(
    {
        "form": st.sampled_from([1, 1, 2, "1", None]),
        "made_at": st.integers() | st.floats() | noise,
        "indexes": st.booleans(),
        "members": st.lists(members, max_size=3) | json_values(("name",), noise),
    }
)


@given(st.binary(max_size=100) | (lists | json_values(("form", "members"), noise)).map(json.dumps).map(str.encode))
def test_a_list_of_contents_is_read_or_unfit(data: bytes) -> None:
    try:
        manifest = read_manifest(data)
    except InvalidBackup as error:
        assert str(error)
    else:
        assert all(".." not in member.name and not member.name.startswith("/") for member in manifest.members)


def packed(names: list[str], listed: bytes, cut: int) -> bytes:
    """An archive as somebody might bring it, cut or not."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as made:
        for name, content in [(NAME, listed), *((name, b"x") for name in names)]:
            header = tarfile.TarInfo(name.replace("\0", "") or "x")
            header.size = len(content)
            made.addfile(header, io.BytesIO(content))
    whole = gzip.compress(stream.getvalue(), 1)
    return whole[: len(whole) - cut]


@given(
    st.binary(max_size=300)
    | st.builds(
        packed,
        st.lists(
            among(("../", "/", "console_history", "inbox.sqlite", "repositories/a/catalog.sqlite"), most=3), max_size=3
        ),
        lists.map(json.dumps).map(str.encode),
        st.sampled_from([0, 0, 1, 40]),
    ),
    st.integers(0, 10**9),
)
@settings(suppress_health_check=NO_PROBLEM)
def test_an_archive_is_unpacked_into_its_folder_or_unfit(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, flip: int
) -> None:
    folder = tmp_path_factory.mktemp("backup")
    damaged = bytearray(data)
    if damaged and flip % 3 == 0:
        damaged[flip % len(damaged)] ^= 1 << flip % 8
    (folder / "file").write_bytes(damaged)
    (folder / "into").mkdir()
    try:
        with open_archive(folder / "file") as archive:
            archive.unpack(folder / "into")
    except InvalidBackup as error:
        assert str(error)
    assert {path.name for path in folder.iterdir()} == {"file", "into"}


@given(
    json_values(("id", "query"), noise).map(json.dumps)
    | noise
    | among(('{"id": 1, ', '"query": ', '"x"', "}", "[", "1e999"), most=6)
)
def test_a_line_of_a_batch_is_a_query_or_says_why_not(line: str) -> None:
    try:
        read = parse_batch_line(line)
    except InvalidBatchLine as error:
        assert str(error)
    else:
        assert read.query.strip()


@given(
    st.binary(max_size=100)
    | st.fixed_dictionaries(
        {
            "results": st.lists(json_values(("url", "title", "content"), noise), max_size=4)
            | st.lists(
                st.fixed_dictionaries({"url": noise}, optional={"title": noise, "content": st.none() | noise}),
                max_size=4,
            )
        }
    )
    .map(json.dumps)
    .map(str.encode)
)
def test_the_answer_of_a_search_server_is_pages_or_an_error(body: bytes) -> None:
    class Server(SearxngSearch):
        async def _fetch_results(self, query: str) -> bytes:
            return body

    try:
        pages = asyncio.run(Server("http://127.0.0.1:9").search("x", limit=3))
    except WebSearchError as error:
        assert "CITEBOT" in str(error) or "JSON" in str(error)
    else:
        assert len(pages) <= 3
