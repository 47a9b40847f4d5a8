"""An ordinary day in a team's channel that citebot overhears, without a model, over an index of this checkout.

Each message was written before the rule was looked at. Half of them are talk of the office, which gets no answer.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.agent import Agent
from agent.persistence.checkpointer import open_saver
from indexer.index import CodeIndex
from indexer.secrets import redact_secrets
from tests.agent.answers.test_newcomers import OneIndex
from tests.agent.conftest import answer_to
from tests.test_architecture import ROOT

OWN = f"/{Path(__file__).relative_to(ROOT).as_posix()}"
OFFICE = (
    "morning all, anybody in the office today?",
    "what time is standup tomorrow?",
    "can somebody review my pull request before lunch?",
    "who is on call this weekend?",
    "is the staging server down for anyone else?",
    "who took the projector from the big meeting room?",
    "do we have a retro this week or was it moved?",
    "where do I send my expense report?",
    "is anyone else's VPN this slow today?",
    "does somebody know a good ramen place near the new office?",
    "when does the sprint end?",
    "how do I get access to the payroll calendar?",
)
CODE = (
    "who calls make_permalink?",
    "where is RefChooser defined?",
    "what does find_web_base do?",
    "does anything still use open_memory_store?",
    "where do we set retention_days?",
    "which tests cover replace_links?",
    "what's in bot/access.py",
    "what is the default of poll_seconds?",
    "who wrote agent/graph.py?",
    "when was indexer/watcher.py last changed?",
    "how do I run the tests?",
    "where is the lease of a conversation renewed?",
)


@pytest.mark.exhaustive
async def test_code_is_answered_and_the_office_is_left_alone(tmp_path: Path) -> None:
    index = await CodeIndex.open(ROOT, home=tmp_path / "home", name="citebot", exclude=[OWN])
    posted = []
    try:
        await index.refresh()
        async with open_saver(tmp_path / "conversations.db") as saver:
            agent = Agent(OneIndex(index), saver, redact_secrets)
            for number, message in enumerate((*OFFICE, *CODE)):
                answer = await answer_to(agent, message, str(number))
                if answer.found and not answer.is_pointing:
                    posted.append(message)
    finally:
        await index.aclose()

    assert [message for message in OFFICE if message in posted] == []
    assert len(posted) >= 10, posted
