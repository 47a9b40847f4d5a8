"""A link to lines of a file shows them at the commit that the link names, answered from a real git repository."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from langchain_core.messages import BaseMessage

from agent.agent import Agent
from agent.persistence.checkpointer import SqliteConversations
from indexer.index import CodeIndex
from tests.agent.answers.test_history_answers import HeldCode
from tests.agent.conftest import SECRET, answer_to, redact
from tests.fakes.repositories import GitRepo
from tests.fakes.scripted_model import ScriptedModel, ScriptedModels

LINES = "".join(f"step_{number} = {number}\n" for number in range(1, 13))


@pytest.fixture
def repository(tmp_path: Path) -> GitRepo:
    """A file whose lines have moved since, one that is gone, and two that nobody may see."""
    repository = GitRepo(tmp_path / "shop")
    repository.write("src/steps.py", LINES)
    repository.write("src/gone.py", "def removed_later():\n    return 1\n")
    repository.write("deploy/.env", f"TOKEN={SECRET}\n")
    repository.write("private/plan.py", "plan = 'buy'\n")
    repository.commit("first")
    repository.write("src/steps.py", f"# New at the top.\n# And another.\n{LINES.replace('step_', 'stage_')}")
    repository.remove("src/gone.py")
    repository.remove("deploy/.env")
    repository.commit("second")
    return repository


@pytest.fixture
async def code(repository: GitRepo, tmp_path: Path) -> AsyncIterator[HeldCode]:
    index = await CodeIndex.open(
        repository.root, home=tmp_path / "home", web_url="https://github.com/shop/shop", exclude=("private/",)
    )
    try:
        await index.refresh()
        yield HeldCode(await index.pin())
    finally:
        await index.aclose()


@pytest.fixture
def agent(code: HeldCode, saver: SqliteConversations) -> Agent:
    return Agent(code, saver, redact)


HOSTS = {
    "github": ("https://github.com/shop/shop/blob/{sha}/{path}", "#L3", "#L3-L4"),
    "gitlab": ("https://gitlab.com/shop/shop/-/blob/{sha}/{path}", "#L3", "#L3-4"),
    "gitea": ("https://codeberg.org/shop/shop/src/commit/{sha}/{path}", "#L3", "#L3-L4"),
    "bitbucket": ("https://bitbucket.org/shop/shop/src/{sha}/{path}", "#lines-3", "#lines-3:4"),
}
FORMS = {
    "asked": "what does {url} do?",
    "slack": "see <{url}|src/steps.py:3 in shop>",
    "discord": "[src/steps.py:3](<{url}>) what is this?",
    "markdown": "[[1]]({url})",
}


@pytest.mark.parametrize(("host", "form"), [*((host, "bare") for host in HOSTS), *(("github", form) for form in FORMS)])
@pytest.mark.parametrize("is_range", [False, True], ids=["line", "range"])
async def test_a_link_shows_its_lines_at_its_commit(
    agent: Agent, repository: GitRepo, host: str, form: str, *, is_range: bool
) -> None:
    first = repository.sha("HEAD~1")
    base, *anchors = HOSTS[host]
    url = base.format(sha=first, path="src/steps.py") + anchors[is_range]

    answer = await answer_to(agent, FORMS.get(form, "{url}").format(url=url))

    assert "step_3 = 3\nstep_4 = 4" in answer.text
    assert ("step_8 = 8" in answer.text) is not is_range  # beside one line those around it are shown
    assert "stage_" not in answer.text
    assert f"at commit `{first[:12]}`" in answer.text
    [citation] = answer.citations
    anchor = "#L3-L4" if is_range else "#L1-L8"
    assert citation.url == f"https://github.com/shop/shop/blob/{first}/src/steps.py{anchor}"
    assert citation.is_elsewhere


async def test_a_link_with_a_shortened_commit_shows_that_commit(agent: Agent, repository: GitRepo) -> None:
    first = repository.sha("HEAD~1")

    answer = await answer_to(agent, f"https://github.com/shop/shop/blob/{first[:8]}/src/steps.py#L3")

    assert "step_3 = 3" in answer.text


async def test_a_link_to_the_commit_that_is_read_shows_it_as_any_lines(agent: Agent, repository: GitRepo) -> None:
    answer = await answer_to(agent, f"https://github.com/shop/shop/blob/{repository.sha()}/src/steps.py#L3-L4")

    assert "stage_1 = 1\nstage_2 = 2" in answer.text
    assert not answer.citations[0].is_elsewhere


async def test_a_link_to_a_file_that_is_gone_still_shows_it(agent: Agent, repository: GitRepo) -> None:
    first = repository.sha("HEAD~1")

    answer = await answer_to(agent, f"<https://github.com/shop/shop/blob/{first}/src/gone.py#L1-L2|gone.py>")

    assert "def removed_later():" in answer.text
    assert [one.commit for one in answer.citations] == [first]


async def test_a_link_to_a_commit_that_is_not_here_says_so_and_shows_the_branch(agent: Agent) -> None:
    answer = await answer_to(agent, f"https://github.com/fork/shop/blob/{'c' * 40}/src/steps.py#L3-L4")

    assert "There is no commit cccccccccccc here: it was force-pushed away or is in another fork." in answer.text
    assert "These are its lines on main." in answer.text
    assert "stage_1 = 1\nstage_2 = 2" in answer.text


async def test_neither_commit_nor_file_being_here_is_said(agent: Agent) -> None:
    answer = await answer_to(agent, f"https://github.com/fork/shop/blob/{'c' * 40}/src/gone.py#L1")

    assert "There is no commit cccccccccccc here" in answer.text
    assert "There is no such file now either." in answer.text
    assert answer.citations == ()


async def test_lines_past_the_end_at_the_commit_are_not_made_up(agent: Agent, repository: GitRepo) -> None:
    first = repository.sha("HEAD~1")

    answer = await answer_to(agent, f"https://github.com/shop/shop/blob/{first}/src/steps.py#L11-L40")
    beyond = await answer_to(agent, f"https://github.com/shop/shop/blob/{first}/src/gone.py#L9")

    assert "lines 11–12 at commit" in answer.text
    assert "src/gone.py has 2 lines at" in beyond.text


@pytest.mark.parametrize("path", ["deploy/.env", "private/plan.py", "../outside.py"])
async def test_a_link_shows_no_file_that_is_kept_from_everybody(agent: Agent, repository: GitRepo, path: str) -> None:
    answer = await answer_to(agent, f"https://github.com/shop/shop/blob/{repository.sha('HEAD~1')}/{path}#L1")

    assert SECRET not in answer.text
    assert "buy" not in answer.text
    assert answer.citations == ()


async def test_a_model_is_shown_the_lines_of_the_link(
    code: HeldCode, repository: GitRepo, saver: SqliteConversations
) -> None:
    first = repository.sha("HEAD~1")

    def answer_from(messages: Sequence[BaseMessage]) -> str:
        lines = "\n".join(str(message.text) for message in messages).split("\n")
        heading = next(line for line in lines if f"src/steps.py lines 3-4 at commit {first[:12]}" in line)
        assert "3: step_3 = 3" in lines
        return f"It is three {heading.partition(' ')[0]}."

    model = ScriptedModel({"executor_llm": [answer_from]})
    agent = Agent(code, saver, redact, models=ScriptedModels(model))

    answer = await answer_to(agent, f"what is https://github.com/shop/shop/blob/{first}/src/steps.py#L3-L4 for?")

    assert answer.text == "It is three [1]."
    assert [(one.start_line, one.commit) for one in answer.citations] == [(3, first)]
