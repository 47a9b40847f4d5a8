"""A newcomer's questions about this repository, without a model, over an index of this checkout.

A question is answered where a line of one of its truths is printed: a file, and what the line says or is in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.agent import Agent
from agent.persistence.checkpointer import open_saver
from agent.ports import Answer, CodeSearch
from indexer.index import CodeIndex
from indexer.secrets import redact_secrets
from tests.agent.conftest import answer_to
from tests.test_architecture import ROOT

WANTED = 0.85
OWN = f"/{Path(__file__).relative_to(ROOT).as_posix()}"  # which holds each question word for word
# Beside a path, a part of the printed line or of the label above it; empty if any line of the file is one.
TRUTHS: Sequence[tuple[str, Sequence[tuple[str, str]]]] = (
    ("which environment variables are there?", [(".env.example", ""), ("bot/settings.py", "validation_alias")]),
    ("where is the graph defined?", [("agent/graph.py", "")]),
    (
        "what happens when Gemini is down?",
        [("docs/operations.md", "Platforms"), ("agent/llm/", ""), ("docs/internals.md", "without a model")],
    ),
    ("how does a Slack mention become an answer?", [("docs/architecture.md", "A question in")]),
    ("what does citebot depend on?", [("pyproject.toml", "")]),
    (
        "where are secrets masked before text is sent",
        [("indexer/secrets/", ""), ("agent/text/storable.py", ""), ("docs/guard.md", "")],
    ),
    ("how does it notice new commits?", [("docs/repositories.md", "How new commits"), ("indexer/watcher.py", "")]),
    ("default port of the web page", [("bot/settings.py", "web_port"), (".env.example", "PORT"), ("docs/web.md", "")]),
    ("how many answers run at the same time by default", [("bot/", "max_concurrent"), ("docs/", "MAX_CONCURRENT")]),
    ("where do discord slash commands get registered", [("bot/adapters/discord/adapter.py", "regist")]),
    ("how is a citation checked?", [("agent/citations/", ""), ("agent/nodes/synthesis.py", "")]),
    (
        "what happens after a crash in the middle of an answer",
        [("docs/internals.md", "From a message"), ("docs/robustness.md", ""), ("bot/conversations/", "")],
    ),
    (
        "how do I add a new tool",
        [("CONTRIBUTING.md", "tool"), ("docs/internals.md", "Tools"), ("agent/lookups/", "")],
    ),
    ("how long are conversations kept", [("docs/operations.md", "Retention"), ("bot/settings.py", "retention")]),
    ("where is bm25 scored", [("indexer/search/bm25.py", "")]),
    (
        "why are files read from git objects and not the working tree",
        [("docs/", ""), ("agent/lookups/read_file.py", ""), ("agent/sandbox/working_copy.py", "")],
    ),
    ("how does the sandbox stop a command from using the network", [("docs/sandbox.md", ""), ("agent/sandbox/", "")]),
    ("which file formats can be attached", [("agent/questions/attachments.py", ""), ("docs/slack.md", "")]),
    ("what is the max size of a question", [("agent/guard/size.py", ""), ("docs/robustness.md", "Long messages")]),
    (
        "where are Slack messages split when too long",
        [("bot/markdown/splitting.py", ""), ("bot/replies/paging.py", "")],
    ),
    ("how are renamed files handled by a refresh", [("indexer/", "renam"), ("docs/", "enam")]),
    ("where is prompt injection detected", [("agent/guard/", ""), ("docs/guard.md", "")]),
    ("how to run the tests", [("CONTRIBUTING.md", ""), ("Makefile", "test"), ("README.md", "make")]),
    ("where is the http api for chat completions", [("bot/surfaces/api/", ""), ("docs/http-api.md", "")]),
    ("what happens when the disk is full?", [("docs/", "disk"), ("bot/", "full"), ("indexer/", "full")]),
    (
        "how do I give people access to only some repositories",
        [
            ("bot/access.py", ""),
            ("docs/", "access"),
            ("docs/slack.md", "Who may ask"),
            ("citebot.example.toml", "access"),
        ],
    ),
    ("who decides which model is used for a question", [("docs/configuration.md", ""), ("agent/llm/", "")]),
    ("how does it know that a thread is muted", [("bot/storage/threads.py", ""), ("bot/conversations/", "mute")]),
    ("where is the vector store opened", [("indexer/store/", ""), ("indexer/index.py", "_open")]),
    ("how are several repositories asked at once", [("agent/repositories/", ""), ("docs/repositories.md", "")]),
)


class OneIndex:
    """A library of the index of this checkout."""

    def __init__(self, index: CodeIndex) -> None:
        self._index = index

    async def pin(self, repository: str | None = None) -> CodeSearch:
        """Return the newest generation, whatever the name."""
        return await self._index.pin()


def is_answered(answer: Answer, truths: Sequence[tuple[str, str]], lines_of: dict[str, list[str]]) -> bool:
    """Whether a line that is cited and printed is one of the truths."""
    printed = " ".join(answer.text.split())
    labels = {path: label for label, path in re.findall(r"^\d\. (.*?)`([^`]+)`$", answer.text, re.MULTILINE)}
    for cited in answer.citations:
        if cited.path not in lines_of:
            path = ROOT / cited.path
            lines_of[cited.path] = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        for line in lines_of[cited.path][cited.start_line - 1 : cited.end_line]:
            said = f"{labels.get(cited.path, '')} {line}"
            is_printed = " ".join(line.split())[:60] in printed or cited.start_line == cited.end_line
            if is_printed and any(
                cited.path.startswith(path) and text.lower() in said.lower() for path, text in truths
            ):
                return True
    return False


@pytest.mark.exhaustive
async def test_what_newcomers_ask_is_shown_where_it_stands(tmp_path: Path) -> None:
    index = await CodeIndex.open(ROOT, home=tmp_path / "home", name="citebot", exclude=[OWN])
    lines_of: dict[str, list[str]] = {}
    missed = []
    try:
        await index.refresh()
        async with open_saver(tmp_path / "conversations.db") as saver:
            agent = Agent(OneIndex(index), saver, redact_secrets)
            for number, (question, truths) in enumerate(TRUTHS):
                if not is_answered(await answer_to(agent, question, str(number)), truths, lines_of):
                    missed.append(question)
    finally:
        await index.aclose()

    assert len(missed) <= (1 - WANTED) * len(TRUTHS), missed
