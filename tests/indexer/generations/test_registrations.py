"""Registrations with frameworks are found in the index: routes, commands, tasks, events, models and settings."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from indexer.index import CodeIndex
from indexer.parsing.file_parser import parse_file
from indexer.parsing.registrations.finder import MAX_REGISTRATIONS
from indexer.types import Registration, RegistrationKind, RegistrationSite
from tests.fakes.frameworks import FRAMEWORKS
from tests.fakes.repositories import GitRepo

KINDS: tuple[RegistrationKind, ...] = (
    "route", "command", "task", "event", "model", "flag", "environment", "setting", "table", "index", "access",
    "service", "rpc", "type", "resource", "job", "topic", "client", "variable", "feature",
)  # fmt: skip


def describe(one: Registration) -> str:
    """Write a registration on one line, without what is empty."""
    parts = ((" = ", one.detail), (" -> ", one.handler), (" : ", one.help))
    return f"{one.kind} {one.name}" + "".join(sign + text for sign, text in parts if text)


@asynccontextmanager
async def opened(repository: GitRepo, home: Path) -> AsyncIterator[CodeIndex]:
    index = await CodeIndex.open(repository.root, home=home)
    try:
        yield index
    finally:
        await index.aclose()


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Sequence[RegistrationSite]:
    """All that the index of one repository with all frameworks holds."""
    folder = tmp_path_factory.mktemp("frameworks")
    repository = GitRepo(folder / "repo")
    for path, (text, _) in FRAMEWORKS.items():
        repository.write(path, text)
    repository.commit()

    async def read_all() -> Sequence[RegistrationSite]:
        async with opened(repository, folder / "home") as index:
            await index.refresh()
            return await (await index.pin()).registrations(KINDS)

    return asyncio.run(read_all())


@pytest.mark.parametrize("path", list(FRAMEWORKS))
def test_everything_that_a_file_registers_is_found_and_nothing_else(
    sites: Sequence[RegistrationSite], path: str
) -> None:
    found = [describe(site.registration) for site in sites if site.path == path]

    assert sorted(found) == sorted(FRAMEWORKS[path][1])


def test_a_registration_stands_on_the_line_that_names_it(sites: Sequence[RegistrationSite]) -> None:
    [site] = [site for site in sites if site.registration.name == "--boxes, -b"]

    assert '"--boxes"' in FRAMEWORKS[site.path][0].split("\n")[site.location.start_line - 1]


async def test_a_changed_file_registers_what_it_has_now(tmp_path: Path) -> None:
    repository = GitRepo(tmp_path / "repo")
    repository.write("app.py", '@app.get("/old")\ndef old(): ...\n')
    repository.write("kept.py", '@app.get("/kept")\ndef kept(): ...\n')
    repository.commit()
    async with opened(repository, tmp_path / "home") as index:
        await index.refresh()
        before = await index.pin()
        repository.write("app.py", '@app.get("/new")\ndef new(): ...\n')
        repository.commit()
        report = await index.refresh()

        assert report.changed == 1
        assert [site.registration.name for site in await before.registrations(["route"])] == ["GET /old", "GET /kept"]
        after = await (await index.pin()).registrations(["route"])
        assert [site.registration.name for site in after] == ["GET /new", "GET /kept"]


async def test_a_secret_that_is_a_default_is_masked(tmp_path: Path) -> None:
    token = "ghp_" + "a1B2c3D4" * 4 + "e5F6"
    repository = GitRepo(tmp_path / "repo")
    repository.write("settings.py", f'GITHUB_TOKEN = "{token}"\n')
    repository.commit()
    async with opened(repository, tmp_path / "home") as index:
        await index.refresh()
        [site] = await (await index.pin()).registrations(["setting"])

        assert site.registration.name == "GITHUB_TOKEN"
        assert "a1B2c3D4" not in site.registration.detail


def test_a_file_of_generated_routes_is_read_up_to_a_limit() -> None:
    text = "".join(f'@app.get("/{number}")\ndef f{number}(): ...\n' for number in range(2 * MAX_REGISTRATIONS))

    assert len(parse_file("app.py", text).registrations) == MAX_REGISTRATIONS


def test_long_names_defaults_and_help_are_cut() -> None:
    text = f'parser.add_argument("--{"x" * 1_000}", default="{"y" * 1_000}", help="{"z" * 1_000}")\n'

    [found] = parse_file("cli.py", text).registrations

    assert max(len(found.name), len(found.detail), len(found.help)) <= 300


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", 'x.get("/a").' * 3_000 + "y()"),
        ("a.js", "r.route('/a')" + ".get(h)" * 5_000),
        ("a.rs", "#[arg(" * 5_000),
        ("a.go", 'r.Route("/a", func(r chi.Router) { ' * 2_000),
        ("a.c", "struct option o[] = { " + '{"a", 0}, ' * 20_000),
        ("settings.py", "A_B = " + "[" * 5_000),
    ],
)
def test_a_hostile_file_takes_no_longer_than_its_size_allows(path: str, text: str) -> None:
    parse_file(path, text)
