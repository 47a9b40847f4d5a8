"""How one more of something is added is answered with the documentation, the newest one, and who names it."""

from __future__ import annotations

import pytest

from agent.agent import Agent
from agent.kinds.examples import MAX_DATED, find_family, read_noun
from agent.persistence.checkpointer import SafeSqliteSaver
from indexer.types import FileEntry
from tests.agent.conftest import answer_to, redact
from tests.fakes.code import FakeCode, FakeLibrary

FILES = {
    "src/channels/email.py": "class Email:\n    pass\n",
    "src/channels/pager.py": "class Pager:\n    pass\n",
    "src/channels/zulip.py": "class Zulip:\n    pass\n",
    "src/registry.py": "from src.channels.pager import Pager\nfrom src.channels.zulip import Zulip\n",
    "src/other.py": "print('email zulip')\n",
    "docs/hacking.md": "# Hacking\n\nBe kind.\n\n## A new channel\n\nAdd a file to the folder of channels.\n",
}


async def test_the_guide_comes_first_then_the_newest_and_where_it_is_named(saver: SafeSqliteSaver) -> None:
    answer = await answer_to(Agent(FakeLibrary(FakeCode(FILES)), saver, redact), "how do I add a new channel?", "t")

    assert answer.text.startswith("`docs/hacking.md` [1], *A new channel*, lines 5–7:")
    assert "There are 3 in `src/channels/`; the newest is `src/channels/" in answer.text
    assert "- `src/registry.py` [3]: `from src.channels." in answer.text


async def test_without_a_guide_the_newest_is_shown_itself(saver: SafeSqliteSaver) -> None:
    files = {path: text for path, text in FILES.items() if not path.startswith("docs")}

    answer = await answer_to(Agent(FakeLibrary(FakeCode(files)), saver, redact), "how to add another channel", "t")

    assert answer.text.startswith("There are 3 in `src/channels/`; the newest is `src/channels/")
    assert "```python\nclass " in answer.text


async def test_what_there_are_not_several_of_is_searched_for(saver: SafeSqliteSaver) -> None:
    answer = await answer_to(Agent(FakeLibrary(FakeCode(FILES)), saver, redact), "how do I add a new pager?", "t")

    assert "There are" not in answer.text
    assert "src/channels/pager.py" in answer.text


async def test_an_example_shows_its_class_and_not_its_imports(saver: SafeSqliteSaver) -> None:
    files = {
        f"src/channels/{name}.py": f"import json\nimport os\n\n\nLIMIT = 1\n\n\nclass {name.title()}:\n    pass\n"
        for name in ("email", "pager", "zulip")
    }

    answer = await answer_to(Agent(FakeLibrary(FakeCode(files)), saver, redact), "how do I add a new channel?", "t")

    assert "```python\nclass " in answer.text
    assert "import json" not in answer.text


async def test_a_long_guide_is_quoted_where_it_names_what_to_change(saver: SafeSqliteSaver) -> None:
    talk = "\n\n".join(f"Think about channels once more, for the {at}th time." for at in range(12))
    guide = f"# A new channel\n\n{talk}\n\nAdd a class to `src/channels/`, name it in `src/registry.py`, run `make`.\n"
    agent = Agent(FakeLibrary(FakeCode({**FILES, "docs/hacking.md": guide})), saver, redact)

    answer = await answer_to(agent, "how do I add a new channel?", "t")

    assert "name it in `src/registry.py`" in answer.text


@pytest.mark.parametrize(
    ("target", "family"),
    [("predefined channels rule for a website", []), ("channel for pagers", ["email", "pager", "zulip"])],
)
def test_a_family_is_called_like_the_noun_and_not_like_what_is_said_of_it(target: str, family: list[str]) -> None:
    files = [
        FileEntry(path=path, language="python", source_type="code", lines=2) for path in FILES if path.endswith(".py")
    ]

    found = find_family(files, read_noun(target))

    assert [path.removeprefix("src/channels/").removesuffix(".py") for path in found] == family


def test_what_holds_a_family_together_is_no_member_of_it() -> None:
    files = [
        FileEntry(path=f"internal/integration/{name}.go", language="go", source_type="code", lines=2)
        for name in ("integration", "slack/slack", "ntfy/ntfy", "matrix/matrix")
    ]

    found = find_family(files, read_noun("a new integration"))

    assert found == [f"internal/integration/{name}" for name in ("matrix", "ntfy", "slack")]


async def test_the_newest_is_said_to_be_of_those_whose_commits_were_read(saver: SafeSqliteSaver) -> None:
    many = {f"src/channels/c{at:02}.py": f"class C{at}:\n    pass\n" for at in range(MAX_DATED + 6)}
    agent = Agent(FakeLibrary(FakeCode(many)), saver, redact)

    answer = await answer_to(agent, "how do I add a new channel?", "t")

    assert f"There are {MAX_DATED + 6} in `src/channels/`; the newest of the first {MAX_DATED} is " in answer.text
