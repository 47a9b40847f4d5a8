"""A cluster in which processes die, stall and lose Postgres at random: every question is settled exactly once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bot.chaos import SMALL, run_chaos
from tests.forks import ForkServer

pytestmark = [pytest.mark.exhaustive, pytest.mark.needs("postgres")]


@pytest.mark.timeout(600)
async def test_whatever_dies_each_question_is_settled_exactly_once(forks: ForkServer, tmp_path: Path) -> None:
    report = await run_chaos(forks, SMALL, tmp_path)

    assert report.is_clean, report
