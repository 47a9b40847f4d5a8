"""Twenty real repositories in one bot: opened as configured, told apart by the code in them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.app import open_team_repositories
from bot.repositories.hints import HintLookup, find_hints, pick_winner
from bot.repositories.names import RepositoryProfile
from bot.settings import RepositoryTable, Settings
from indexer.errors import NotIndexed
from tests.fakes.repositories import GitRepo
from tests.fakes.watched import Unseen

pytestmark = pytest.mark.exhaustive

COUNT = 20


def repositories(path: Path, count: int = COUNT) -> tuple[RepositoryTable, ...]:
    """Repositories that share a module and have one of their own."""
    for number in range(count):
        repo = GitRepo(path / f"service-{number}")
        repo.write("common/log.py", "def log_line(text):\n    print(text)\n")
        own = f"class Part{number}Error(Exception):\n    pass\n\n\ndef run_{number}():\n    raise Part{number}Error\n"
        repo.write(f"src/part{number}.py", own)
        repo.commit()
    names = (f"service-{number}" for number in range(count))
    return tuple(
        RepositoryTable(
            path=path / name,
            web_url=f"https://git.example.com/team/{name}",
            channels=("slack:C1",) if name == "service-3" else (),
        )
        for name in names
    )


async def test_questions_find_their_repository_among_twenty(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", repositories=repositories(tmp_path))
    async with open_team_repositories(settings, tmp_path, Unseen()) as stock:
        library = stock.library
        lookups = HintLookup(library, seconds=20)
        nothing = await lookups.find(find_hints("where is log_line?"), library.list_names())
        await asyncio.gather(*(library.refresh(name) for name in library.list_names()))
        found = {
            question: pick_winner((await lookups.find(find_hints(question), library.list_names())).found)
            for question in (
                "who calls run_7?",
                "where is Part11Error raised?",
                "what does src/part4.py do?",
                'File "/srv/app/src/part9.py", line 6, in run_9',
                "where is log_line?",
                "what is in common/log.py?",
            )
        }

    assert list(found.values()) == ["service-7", "service-11", "service-4", "service-9", None, None]
    assert not any(nothing.found.values())
    assert stock.signs["service-3"] == RepositoryProfile(
        page="https://git.example.com/team/service-3", channels=("slack:C1",)
    )


@pytest.mark.parametrize("name", ["service-1", "elsewhere"])
async def test_looking_into_a_repository_begins_nothing(tmp_path: Path, name: str) -> None:
    settings = Settings(home=tmp_path / "home", repositories=repositories(tmp_path, 2))
    async with open_team_repositories(settings, tmp_path, Unseen()) as stock:
        with pytest.raises(NotIndexed):
            await stock.library.pin_existing(name)

        assert (await stock.library.status("service-1")).commit is None
