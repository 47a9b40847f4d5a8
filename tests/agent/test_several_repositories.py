"""One question about several repositories: evidence of all, each place with its repository, one answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from langchain_core.messages import BaseMessage
from pydantic import SecretStr

from agent.agent import Agent
from agent.llm.models import open_models
from agent.lookups.catalogue import LOOKUPS
from agent.persistence.checkpointer import SqliteConversations, open_saver
from agent.ports import Answer, Deps
from agent.prompts.answer_prompts import MAX_JOINED_CHARACTERS, format_overview
from agent.repositories.joined_code import JoinedCode, pin_repositories
from agent.repositories.labels import make_labels
from agent.tools.registry import make_tool_registry
from indexer.errors import EmbedderError, NotIndexed, UnknownPath
from indexer.types import FileImport, Filters, Location
from tests.agent.conftest import Told, redact
from tests.fakes.code import COMMIT, FIRST, FakeCode
from tests.fakes.gemini import running_gemini, says
from tests.fakes.scripted_model import Line, ScriptedModel, ScriptedModels

PAGE = '''"""The page on which people order."""


def submit_basket(basket):
    """Send the basket of the page as an order to the shop."""
    return post("/orders", basket)
'''
ORDERS = '''"""Orders."""


def save_order(order):
    """Write an order into the database."""
    return database.insert("orders", order)


def parse_date(text):
    return text
'''
README = "# {name}\n\nThe {name} of the team.\n"


def make_code(name: str, files: Mapping[str, str], *, sha: str = "") -> FakeCode:
    own = replace(COMMIT, sha=sha or name.encode().hex().ljust(40, "0")[:40])
    code = FakeCode({"README.md": README.format(name=name), **files}, commits=(replace(FIRST, sha=own.sha),))
    code.repository, code.commit = name, own
    return code


class Shelf:
    """A library of several repositories, of which some cannot be read."""

    def __init__(self, *codes: FakeCode) -> None:
        self.codes = {code.repository: code for code in codes}
        self.pinned: list[str | None] = []

    async def pin(self, repository: str | None = None) -> FakeCode:
        self.pinned.append(repository)
        if repository not in self.codes:
            raise NotIndexed(f"{repository} is not indexed yet.")
        return self.codes[repository]


@pytest.fixture
def shelf() -> Shelf:
    return Shelf(
        make_code("shop", {"app/orders.py": ORDERS}),
        make_code("website", {"app/page.py": PAGE, "app/dates.py": "def parse_date(text):\n    return text\n"}),
    )


@pytest.fixture
def both(shelf: Shelf) -> JoinedCode:
    return JoinedCode(members=shelf.codes, labels=make_labels([*shelf.codes]))


async def ask(agent: Agent, question: str, *names: str, thread: str = "t") -> Answer:
    events = [event async for event in agent.ask(question, thread=thread, repositories=names or ("shop", "website"))]
    answer = events[-1].payload["answer"]
    assert isinstance(answer, Answer)
    return answer


async def test_a_question_across_two_repositories_gets_one_answer_from_both(
    shelf: Shelf, saver: SqliteConversations
) -> None:
    answer = await ask(
        Agent(shelf, saver, redact), "how does an order of the basket get from the page to the database?"
    )

    assert {citation.repository for citation in answer.citations} == {"shop", "website"}
    assert {(one.repository, one.path) for one in answer.citations} >= {
        ("shop", "app/orders.py"),
        ("website", "app/page.py"),
    }
    assert {(one.repository, one.commit) for one in answer.citations} == {
        (name, code.commit.sha) for name, code in shelf.codes.items()
    }
    assert answer.commits == {name: code.commit.sha for name, code in shelf.codes.items()}
    assert (answer.repository, answer.commit, answer.found) == ("shop, website", "", True)
    assert "`website/app/page.py`" in answer.text
    assert "in `shop/app/orders.py`\n   - 4 " in answer.text


async def test_a_name_that_one_repository_defines_is_found_there(shelf: Shelf, saver: SqliteConversations) -> None:
    answer = await ask(Agent(shelf, saver, redact), "where is submit_basket defined?")

    assert answer.text.startswith("`submit_basket` is defined in `website/app/page.py` [1], lines 4–6.")
    assert next((one.repository, one.path) for one in answer.citations) == ("website", "app/page.py")


async def test_a_name_that_both_define_is_shown_with_its_repositories(shelf: Shelf, saver: SqliteConversations) -> None:
    answer = await ask(Agent(shelf, saver, redact), "where is parse_date defined?")

    assert "`parse_date` is defined in 2 places" in answer.text
    assert {(one.repository, one.path) for one in answer.citations} == {
        ("shop", "app/orders.py"),
        ("website", "app/dates.py"),
    }


async def test_what_a_repository_is_gets_a_part_for_each(shelf: Shelf, saver: SqliteConversations) -> None:
    answer = await ask(Agent(shelf, saver, redact), "what does this project do?")

    assert answer.text.index("In `shop`:") < answer.text.index("The shop of the team.")
    assert answer.text.index("In `website`:") < answer.text.index("The website of the team.")
    assert {(one.repository, one.path) for one in answer.citations} >= {("shop", "README.md"), ("website", "README.md")}


async def test_a_repository_that_has_none_of_it_is_named_in_a_sentence(saver: SqliteConversations) -> None:
    command = "import click\n\n\n@click.command()\ndef serve():\n    return 1\n"
    shelf = Shelf(make_code("shop", {"app/cli.py": command}), make_code("website", {"app/page.py": PAGE}))
    answer = await ask(Agent(shelf, saver, redact), "which commands are there?")

    assert "In `shop`:" in answer.text
    assert "`serve`" in answer.text
    assert "No match in `website`." in answer.text
    assert {one.repository for one in answer.citations} == {"shop"}


async def test_commits_are_cited_in_their_own_repositories(shelf: Shelf, saver: SqliteConversations) -> None:
    answer = await ask(Agent(shelf, saver, redact), "what changed lately?")

    commits = {(one.repository, one.commit) for one in answer.citations if not one.path}
    assert commits == {(name, code.commit.sha) for name, code in shelf.codes.items()}


async def test_a_repository_that_cannot_be_read_does_not_kill_the_answer(
    shelf: Shelf, saver: SqliteConversations
) -> None:
    answer = await ask(Agent(shelf, saver, redact), "where is save_order defined?", "shop", "gone")

    assert "`shop/app/orders.py`" in answer.text
    assert answer.missing == {"gone": "gone is not indexed yet."}
    assert list(answer.commits) == ["shop"]


async def test_nothing_is_answered_where_none_can_be_read(shelf: Shelf, saver: SqliteConversations) -> None:
    answer = await ask(Agent(shelf, saver, redact), "where is save_order defined?", "lost", "gone")

    assert (answer.route, answer.text) == ("failed", "lost is not indexed yet.")


async def test_a_follow_up_leans_on_the_answer_about_both(shelf: Shelf, saver: SqliteConversations) -> None:
    agent = Agent(shelf, saver, redact)
    await ask(agent, "where is submit_basket defined?")

    answer = await ask(agent, "who calls it?")

    assert "submit_basket" in answer.text
    assert answer.repository == "shop, website"


async def test_a_question_about_one_repository_stays_as_it_was(shelf: Shelf, saver: SqliteConversations) -> None:
    answer = await ask(Agent(shelf, saver, redact), "where is save_order defined?", "shop")

    assert answer.text.startswith("`save_order` is defined in `app/orders.py` [1]")
    assert [one.repository for one in answer.citations] == [""] * len(answer.citations)
    assert (answer.commit, answer.commits) == (shelf.codes["shop"].commit.sha, {})


async def test_a_run_that_was_broken_off_goes_on_with_the_same_repositories(tmp_path: Path, shelf: Shelf) -> None:
    gate = asyncio.Event()
    for code in shelf.codes.values():
        code._gate = gate
    question = "how does an order of the basket get from the page to the database?"
    async with open_saver(tmp_path / "c.db") as saver:
        events = Agent(shelf, saver, redact).ask(question, thread="t", repositories=("shop", "website"), run_id="run")
        task = asyncio.create_task(anext(events))
        await task
        waiting = asyncio.create_task(collect(events))
        await shelf.codes["shop"].searching.wait()
        waiting.cancel()
        await asyncio.wait({waiting})
    gate.set()
    shelf.pinned.clear()
    async with open_saver(tmp_path / "c.db") as saver:
        told = [event async for event in Agent(shelf, saver, redact).resume("run", thread="t")]

    answer = told[-1].payload["answer"]
    assert shelf.pinned == ["shop", "website"]
    assert {one.repository for one in answer.citations} == {"shop", "website"}


async def collect(events: object) -> None:
    async for _ in events:  # type: ignore[attr-defined]
        pass


async def test_the_commit_of_several_differs_where_one_of_theirs_has_moved(shelf: Shelf) -> None:
    first = await pin_repositories(shelf, ["shop", "website"])
    moved = Shelf(shelf.codes["shop"], make_code("website", {"app/page.py": PAGE}, sha="f" * 40))

    second = await pin_repositories(moved, ["shop", "website"])

    assert first.commit.sha != second.commit.sha
    assert first.repository == second.repository


async def test_paths_are_read_with_and_without_their_label(both: JoinedCode) -> None:
    assert (await both.read("website/app/page.py", 4, 4)).location.path == "website/app/page.py"
    assert (await both.narrow("website").read("app/page.py", 4, 4)).location.path == "website/app/page.py"
    with pytest.raises(UnknownPath, match="paths begin with one of shop, website"):
        await both.read("app/page.py")


async def test_imports_are_those_of_each_repository() -> None:
    files = {"app/page.py": "import app.dates\n", "app/dates.py": ""}
    members = {name: make_code(name, files) for name in ("shop", "website")}

    found = await JoinedCode(members=members, labels=make_labels([*members])).list_file_imports()

    assert found == [
        FileImport(path=f"{name}/app/page.py", line=1, targets=(f"{name}/app/dates.py",)) for name in members
    ]


async def test_filters_hold_for_the_repository_that_they_name(both: JoinedCode) -> None:
    for filters in (
        Filters(folders=("website",)),
        Filters(folders=("website/app",)),
        Filters(patterns=("/website/**",)),
    ):
        hits = await both.search("order page database", filters=filters)
        assert {hit.location.path.split("/")[0] for hit in hits} == {"website"}


async def test_the_best_place_comes_first_whatever_repository_it_is_in(both: JoinedCode) -> None:
    orders = await both.search("write an order into the database")
    baskets = await both.search("send the basket of the page")

    assert orders[0].location.path == "shop/app/orders.py"
    assert baskets[0].location.path == "website/app/page.py"


async def test_the_best_place_of_each_repository_comes_before_the_second_of_any() -> None:
    many = make_code("many", {f"app/save_{at}.py": ORDERS.replace("save", f"save_{at}") for at in range(12)})
    few = make_code("few", {"app/page.py": PAGE, "app/store.py": "def write_order(order):\n    return order\n"})
    joined = JoinedCode(members={"many": many, "few": few}, labels=make_labels(["many", "few"]))

    hits = await joined.search("write an order")
    strange = await joined.search("insert orders into the database")

    assert {hit.location.path.split("/")[0] for hit in hits[:2]} == {"many", "few"}
    assert {hit.location.path.split("/")[0] for hit in strange[:3]} == {"many"}


async def test_a_search_that_fails_in_one_repository_leaves_the_others_standing(shelf: Shelf) -> None:
    broken = make_code("broken", {"a.py": ORDERS})
    broken._failing = frozenset({"hybrid"})
    joined = JoinedCode(members={"broken": broken, **shelf.codes}, labels=make_labels(["broken", *shelf.codes]))

    assert await joined.search("write an order into the database")
    with pytest.raises(EmbedderError):
        await joined.narrow("broken").search("write an order into the database")


async def test_a_pattern_is_counted_over_all_repositories(both: JoinedCode) -> None:
    matches = await both.grep("def parse_date", limit=10)

    assert [line.location.path for line in matches.lines] == ["shop/app/orders.py", "website/app/dates.py"]
    assert matches.counts == (2,)
    assert {line.location.path for line in (await both.grep("def", path="website/app")).lines} == {
        "website/app/page.py",
        "website/app/dates.py",
    }
    with pytest.raises(UnknownPath):
        await both.grep("def", path="nowhere")


async def test_tools_take_a_repository(both: JoinedCode, told: Told) -> None:
    deps, tools = Deps(code=both, redact=redact, emit=told), make_tool_registry()
    offers = {offer["name"]: offer["parameters"]["properties"] for offer in tools.menu(deps)}

    found = await tools.call("find_symbol", {"name": "parse_date", "repository": "website"}, deps)
    read = await tools.call("read_file", {"file_path": "README.md", "repository": "shop"}, deps)
    listed = await tools.call("list_directory", {"path": "app", "repository": "website"}, deps)
    top = await tools.call("list_directory", {}, deps)
    refused = await tools.call("grep", {"pattern": "x", "repository": "secret"}, deps)

    assert all(properties["repository"]["enum"] == ["shop", "website"] for properties in offers.values())
    assert {ref["path"] for ref in found.refs} == {"website/app/dates.py"}
    assert {ref["path"] for ref in read.refs} == {"shop/README.md"}
    assert {ref["path"] for ref in listed.refs} == {"website/app/page.py", "website/app/dates.py"}
    assert "shop/ (2 files" in top.text
    assert (refused.ok, refused.text) == (False, "There is no repository 'secret'. There are: shop, website.")


async def test_tools_of_one_repository_take_none(shelf: Shelf, told: Told) -> None:
    deps = Deps(code=shelf.codes["shop"], redact=redact, emit=told)

    assert all("repository" not in offer["parameters"]["properties"] for offer in make_tool_registry().menu(deps))


async def test_the_log_is_that_of_each_repository(both: JoinedCode, told: Told, shelf: Shelf) -> None:
    deps, tools = Deps(code=both, redact=redact, emit=told), make_tool_registry()

    everything = await tools.call("repository_log", {}, deps)
    own = await tools.call("repository_log", {"repository": "website"}, deps)
    blamed = await tools.call("file_history", {"path": "website/app/page.py"}, deps)

    assert {(ref["repository"], ref["commit"]) for ref in everything.refs} == {
        (name, code.commit.sha) for name, code in shelf.codes.items()
    }
    assert {ref["repository"] for ref in own.refs} == {"website"}
    assert blamed.text.startswith("Commits that changed website/app/page.py, newest first:")


async def test_the_overviews_of_many_repositories_share_a_room(told: Told) -> None:
    names = [f"service-{number}" for number in range(6)]
    codes = {name: make_code(name, {f"folder-{at}/{'x' * 60}/a.py": "x = 1\n" for at in range(60)}) for name in names}
    joined = JoinedCode(members=codes, labels=make_labels(names), missing={"gone": "It is gone."})

    text = await format_overview(Deps(code=joined, redact=redact, emit=told))

    assert all(f"Below {name}/: {name} at commit" in text for name in names)
    assert "gone cannot be read now." in text
    assert len(text) < MAX_JOINED_CHARACTERS + 600


def test_labels_differ_and_never_read_as_tests_or_documents() -> None:
    labels = make_labels(["shop", "team/shop", "docs", "my repo", "Shop"]).by_name

    assert list(labels.values()) == ["shop", "team-shop", "docs-repository", "my-repo", "Shop-2"]


def test_a_commit_is_linked_in_its_own_repository(both: JoinedCode) -> None:
    for name in both.members:
        at = Location(path="", start_line=0, end_line=0, commit="abc", repository=name)
        assert both.permalink(at, "abc") == both.members[name].permalink(at, "abc")


async def test_a_model_reads_all_repositories_and_cites_each(shelf: Shelf, saver: SqliteConversations) -> None:
    def answer_from(messages: Sequence[BaseMessage]) -> Line:
        (line,) = (line for line in str(messages[-1].text).split("\n") if "database.insert" in line and "[E" in line)
        return (
            f"`submit_basket` sends the basket to the shop [E1]. "
            f"`save_order` writes it with `database.insert` {line.partition(' ')[0]}."
        )

    look = [("grep", {"pattern": "database.insert", "repository": "shop"})]
    model = ScriptedModel({"executor_llm": [look, answer_from]})
    answer = await ask(Agent(shelf, saver, redact, models=ScriptedModels(model)), "where is submit_basket defined?")
    told = "\n".join(str(message.text) for message in model.asked[0][1])

    assert "Below shop/: shop at commit" in told
    assert "Below website/: website at commit" in told
    assert "[E1] website/app/page.py lines 4-6" in told
    assert [(one.repository, one.path, one.commit) for one in answer.citations] == [
        ("website", "app/page.py", shelf.codes["website"].commit.sha),
        ("shop", "app/orders.py", shelf.codes["shop"].commit.sha),
    ]
    assert answer.text.endswith("`database.insert` [2].")


async def test_a_gemini_is_offered_tools_that_take_a_repository(shelf: Shelf, saver: SqliteConversations) -> None:
    with running_gemini() as gemini:
        gemini.script = lambda _: says("`submit_basket` sends the basket of the page [E1].")
        async with open_models(google_api_key=SecretStr("k"), google_base_url=gemini.url) as models:
            for chat in models.main:
                chat.calls_tools = True
            answer = await ask(Agent(shelf, saver, redact, models=models), "where is submit_basket defined?")
        offered = json.dumps(gemini.received[0].body["tools"])

    assert offered.count('"enum": ["shop", "website"]') == len(LOOKUPS)
    assert [(one.repository, one.path) for one in answer.citations] == [("website", "app/page.py")]
