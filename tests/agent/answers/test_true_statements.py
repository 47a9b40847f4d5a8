"""Statements in answers are true: their counts, their places, and whether a name is defined."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from agent.agent import Agent
from agent.answers.places import FRAME
from agent.evidence.refs import sort_definitions
from agent.persistence.checkpointer import SqliteConversations
from agent.ports import CodeSearch
from agent.questions.follow_ups import is_pointing_back
from agent.questions.question_parts import split_questions
from indexer.errors import DamagedCatalog
from indexer.types import Definition, RegistrationKind, RegistrationSite, Symbol, SymbolKind
from tests.agent.conftest import answer_to, redact
from tests.fakes.code import FakeCode, FakeLibrary
from tests.fakes.repositories import GitRepo
from tests.indexer.git.test_history import pinned


class IndexedLibrary:
    """A library of one repository that is really indexed, whose calls are resolved."""

    def __init__(self, code: CodeSearch) -> None:
        self._code = code

    async def pin(self, repository: str | None = None) -> CodeSearch:
        return self._code


def make_agent(saver: SqliteConversations, files: dict[str, str]) -> Agent:
    return Agent(FakeLibrary(FakeCode(files)), saver, redact)


async def test_two_calls_in_one_function_are_listed_as_two(saver: SqliteConversations) -> None:
    agent = make_agent(saver, {"a.py": "def pay():\n    pass\n\n\ndef buy():\n    pay()\n    print()\n    pay()\n"})

    answer = await answer_to(agent, "who calls pay?")

    assert answer.text.startswith("2 calls of `pay` [1], from 1 place:")
    assert "- `buy` in `a.py:6, 8` [2] [3]: `pay()`" in answer.text
    assert {one.start_line for one in answer.citations} == {1, 6, 8}


async def test_two_calls_on_one_line_are_counted_where_they_stand(saver: SqliteConversations) -> None:
    agent = make_agent(saver, {"a.py": "def inc(n):\n    return n\n\n\ndef buy():\n    return inc(inc(1))\n"})

    answer = await answer_to(agent, "who calls inc?")

    assert answer.text.startswith("2 calls of `inc` [1], from 1 place:")
    assert "- `buy` in `a.py:6` [2] (2 calls):" in answer.text


async def test_a_call_that_may_mean_two_definitions_is_one_call(saver: SqliteConversations) -> None:
    files = {"a.py": "def pay():\n    pass\n", "b.py": "def pay():\n    pass\n", "c.py": "def buy():\n    x.pay()\n"}

    answer = await answer_to(make_agent(saver, files), "who calls pay?")

    assert answer.text.startswith("1 call of `pay`, which may mean any of 2 definitions [1] [2]:")
    assert answer.text.count("`c.py:2`") == 1


async def test_calls_that_are_listed_and_those_that_are_not_make_the_count(saver: SqliteConversations) -> None:
    buyers = "\n".join(f"def buy_{number}():\n    pay()\n    pay()\n    pay()\n" for number in range(12))
    many = "def buy_often():\n" + "    pay()\n" * 9

    answer = await answer_to(make_agent(saver, {"a.py": f"def pay():\n    pass\n\n{many}\n{buyers}"}), "who calls pay?")

    assert answer.text.startswith("45 calls of `pay` [1], from 13 places:")
    places = re.findall(r"in `a\.py:([\d, ]+)`", answer.text)
    listed = sum(len(place.split(",")) for place in places)
    assert f"- and {45 - listed} more" in answer.text


async def test_what_a_function_calls_is_counted_with_what_is_left_out(saver: SqliteConversations) -> None:
    steps = "\n".join(f"def step_{number}():\n    pass\n" for number in range(12))
    calls = "".join(f"    step_{number}()\n" for number in range(12))

    answer = await answer_to(
        make_agent(saver, {"a.py": f"{steps}\ndef run():\n{calls}    print()\n"}), "what does run call?"
    )

    assert answer.text.startswith("13 calls made by `run` [1], 12 of them of names defined here:")
    assert answer.text.count("- `step_") == 8
    assert "- and 4 more" in answer.text


async def test_calls_of_two_definitions_of_a_name_are_told_apart(saver: SqliteConversations, tmp_path: Path) -> None:
    repository = GitRepo(tmp_path / "shop")
    files = {
        "app.py": "class App:\n    def url(self):\n        pass\n",
        "helpers.py": "from app import App\n\n\ndef url():\n    return App().url()\n",
        "pages.py": "from helpers import url\n\n\ndef show():\n    url()\n\n\ndef go():\n    url()\n",
    }

    for path, text in files.items():
        repository.write(path, text)
    repository.commit("Add pages")
    async with pinned(repository, tmp_path / "home") as code:
        answer = await answer_to(Agent(IndexedLibrary(code), saver, redact), "who calls url?")

    assert answer.text.startswith("3 calls of `url`, 2 of `url` [1] and 1 of `App.url` [2]:")
    assert [(one.path, one.start_line) for one in answer.citations[:2]] == [("helpers.py", 4), ("app.py", 2)]


async def test_what_it_depends_on_is_asked_of_the_project_where_nothing_was_said(saver: SqliteConversations) -> None:
    files = {"pyproject.toml": '[project]\nname = "shop"\ndependencies = ["jinja2>=3"]\n', "a.py": "x = 1\n"}

    answer = await answer_to(make_agent(saver, files), "what does it depend on?")

    assert "- `jinja2` in `pyproject.toml` [1], `>=3`" in answer.text


async def test_a_line_behind_the_end_of_a_file_is_not_there(saver: SqliteConversations) -> None:
    answer = await answer_to(make_agent(saver, {"a.py": "x = 1\ny = 2\n"}), "what is in line 99999 of a.py?")

    assert "(the file ends at line 2)" in answer.text


async def test_a_file_that_is_not_there_is_said_to_be_missing(saver: SqliteConversations) -> None:
    files = {"shop/orders.py": "def send_order():\n    pass\n"}

    answer = await answer_to(make_agent(saver, files), "where is shop/nothere.py with the orders?")

    assert answer.text.startswith("There is no `shop/nothere.py` in the ")


TWO_OF_A_NAME = {
    "src/shop/app.py": "\n".join(f"long_{number} = {number}" for number in range(1, 41))
    + "\n\n\ndef serve():\n    pass\n",
    "src/shop/core/app.py": "\n".join(f"short_{number} = {number}" for number in range(1, 21)) + "\n",
}


async def test_a_line_is_shown_of_the_one_file_of_the_name_that_is_long_enough(saver: SqliteConversations) -> None:
    answer = await answer_to(make_agent(saver, TWO_OF_A_NAME), "what is at app.py:33?")

    assert "long_33 = 33" in answer.text
    assert "short_" not in answer.text


async def test_a_line_is_shown_of_each_file_of_the_name_that_has_it(saver: SqliteConversations) -> None:
    answer = await answer_to(make_agent(saver, TWO_OF_A_NAME), "app.py:12")

    assert "long_12 = 12" in answer.text
    assert "short_12 = 12" in answer.text
    assert {one.path for one in answer.citations} == set(TWO_OF_A_NAME)


async def test_a_call_that_may_be_of_another_definition_is_not_counted_with_those_of_one(
    saver: SqliteConversations,
) -> None:
    files = {
        "walk.py": "class Walker:\n    def scan(self):\n        pass\n\n\ndef scan(paths):\n    Walker.scan(paths)\n",
        "main.py": "def run(walk):\n    walk.scan(1)\n",
    }

    answer = await answer_to(make_agent(saver, files), "who calls scan?")

    assert answer.text.startswith(
        "2 calls of `scan`, 1 of `Walker.scan` [1] and 1 that may be of another definition of that name:"
    )


async def test_a_folder_that_is_there_is_not_said_to_be_missing(saver: SqliteConversations) -> None:
    agent = make_agent(saver, {"internal/crypto/crypto.go": "package crypto\n\nfunc Hash() {}\n"})

    answer = await answer_to(agent, "what uses internal/crypto?")

    assert "no `internal/crypto`" not in answer.text
    assert "crypto.go" in answer.text


async def test_a_file_of_which_there_are_two_is_not_said_to_be_missing(saver: SqliteConversations) -> None:
    answer = await answer_to(make_agent(saver, TWO_OF_A_NAME), "what is in app.py?")

    assert "`src/shop/app.py` [1] defines" in answer.text
    assert "`src/shop/core/app.py` [" in answer.text


@pytest.mark.parametrize(
    "question",
    [
        "how is it decided whether a cookie is set?",
        "where is it checked that the cookie is signed?",
        "does it matter whether the cookie is signed?",
    ],
)
async def test_an_impersonal_it_points_to_nothing(saver: SqliteConversations, question: str) -> None:
    code = {"session.py": "def save_session(cookie):\n    # whether the cookie is set\n    return cookie.set()\n"}
    agent = make_agent(saver, code)
    await answer_to(agent, "where is save_session defined?", "told")

    for thread in ("fresh", "told"):
        answer = await answer_to(agent, question, thread)
        assert "points to" not in answer.text
        assert not answer.searched or not any("save_session" in query for query in answer.searched)


@pytest.mark.parametrize(
    "question",
    ["how is it tested?", "is it allowed to be empty?", "does it check whether it is set?", "where is it decided?"],
)
def test_an_it_that_stands_for_something_points_back(question: str) -> None:
    assert is_pointing_back(question)


@pytest.mark.parametrize(
    "question", ["does it support sqlite?", "Can it store sessions in redis?", "is it stored in sqlite?"]
)
async def test_before_anything_is_said_it_may_be_the_project(saver: SqliteConversations, question: str) -> None:
    code = {"store.py": "class Store:\n    # supports sqlite, and stores sessions in redis\n    engines = 2\n"}
    agent = make_agent(saver, code)

    answer = await answer_to(agent, question)

    assert [citation.path for citation in answer.citations] == ["store.py"]


@pytest.mark.parametrize("question", ["does it work?", "is it tested?", "who calls it?"])
async def test_a_question_of_nothing_but_a_pointer_is_asked_back(saver: SqliteConversations, question: str) -> None:
    answer = await answer_to(make_agent(saver, {"store.py": "class Store:\n    works = True\n"}), question)

    assert "points to" in answer.text


async def test_a_second_question_about_what_the_first_one_names_is_answered_too(saver: SqliteConversations) -> None:
    files = {"pay.py": "def send_payment():\n    pass\n\n\ndef run():\n    send_payment()\n"}

    answer = await answer_to(make_agent(saver, files), "where is send_payment defined and who calls it?")

    assert "`send_payment` is defined in `pay.py`" in answer.text
    assert "1 call of `send_payment`" in answer.text


async def test_uses_of_two_things_are_told_apart_and_a_list_is_narrowed_afterwards(saver: SqliteConversations) -> None:
    files = {
        "pay.py": "def send_payment():\n    pass\n\n\ndef run():\n    send_payment()\n",
        "tests/test_pay.py": "from pay import send_payment\n\n\ndef test_pay():\n    send_payment()\n",
    }
    agent = make_agent(saver, files)

    both = await answer_to(agent, "still using send_payment or celery?")
    await answer_to(agent, "who calls send_payment?", "list")
    narrowed = await answer_to(agent, "only tests", "list")

    assert "2 calls of `send_payment`" in both.text
    assert "`celery` does not appear" in both.text
    assert narrowed.text.startswith("1 call of `send_payment` [1] in tests:")


@pytest.mark.parametrize(
    "question",
    [
        "how does the scheduler choose a task and where does it keep it?",
        "what does send_payment do when a card is refused and when it fails?",
        "who calls send_payment and waits for it?",
    ],
)
def test_one_question_stays_one(question: str) -> None:
    assert split_questions(question) == [question]


USES = {
    "go.mod": "require github.com/sirupsen/logrus v1.9.4\n",
    "lib/job.py": "def clear_beat():\n    pass\n\n\ndef stop():\n    return clear_beat\n",
    "web/hub.py": "def on_close(hub):\n    pass\n\n\ndef start(hub):\n    hub.listen(on_close)\n",
    "tests/test_hub.py": "def test_close():\n    on_close(None)\n",
    "CHANGES.md": "Dropped celluloid.\n",
}


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("is logrus used anywhere?", "`logrus` is named only by manifests, on 1 line:"),
        ("does anybody use clear_beat?", "Yes: `clear_beat` [1] is used on 1 line, none of them a call"),
        ("who calls on_close?", "- `start` in `web/hub.py:6` [3], passed as a value: `hub.listen(on_close)`"),
        ("do we still use celluloid in lib?", "No: `celluloid` does not appear in `lib` in the 5 files of `shop`"),
        ("do we use lz4 for compression", "No: `lz4` does not appear in the 5 files of `shop`"),
    ],
)
async def test_uses_are_neither_denied_nor_taken_for_calls(
    saver: SqliteConversations, question: str, said: str
) -> None:
    assert said in (await answer_to(make_agent(saver, USES), question)).text


async def test_only_a_text_that_is_quoted_is_said_not_to_appear(saver: SqliteConversations) -> None:
    answer = await answer_to(make_agent(saver, USES), "whats the beat interval of the hub socket")

    assert "does not appear" not in answer.text


ATTRIBUTES = {
    "shop/app.py": '''class Base:
    template_folder = "templates"


class App(Base):
    """The app.

    default_config: what it starts with, in words.
    """

    default_config = dict(
        debug=False,
        testing=False,
    )
    session: str

    def __init__(self, default_config=None):
        self.started = False
        started = True
        if started == self.started:
            pass
''',
    "shop/setup.py": "def make(\n    started: bool = True,\n):\n    started = 3\n",
}


@pytest.mark.parametrize(
    ("question", "opening", "line"),
    [
        (
            "what is App.default_config?",
            "`default_config` is set in class `App`, `shop/app.py:11` [1]:",
            "    testing=False,",
        ),
        (
            "where is default_config set?",
            "`default_config` is set in class `App`, `shop/app.py:11` [1]:",
            "default_config = dict(",
        ),
        ("where is `started` set?", "`started` is set in class `App`, `shop/app.py:18` [1]:", "self.started = False"),
        ("what is App.session?", "`session` is set in class `App`, `shop/app.py:15` [1]:", "session: str"),
        (
            "what is App.template_folder?",
            "`App` itself does not set it, as far as the syntax tells. `template_folder` is set in class `Base`, ",
            'template_folder = "templates"',
        ),
    ],
)
async def test_an_attribute_is_found_where_its_class_sets_it(
    saver: SqliteConversations, question: str, opening: str, line: str
) -> None:
    answer = await answer_to(make_agent(saver, ATTRIBUTES), question)

    assert answer.text.startswith(opening)
    assert f"\n{line}" in answer.text
    assert answer.found
    assert "No definition" not in answer.text


async def test_a_name_that_no_class_sets_is_still_not_defined(saver: SqliteConversations) -> None:
    answer = await answer_to(make_agent(saver, ATTRIBUTES), "what is App.default_colour?")

    assert "No definition of `App.default_colour` was found" in answer.text


def make_definition(path: str, signature: str, kind: SymbolKind) -> Definition:
    symbol = Symbol(
        name="parse", qualified_name="parse", kind=kind, signature=signature, doc="", start_line=1, end_line=1
    )
    return Definition(path=path, symbol=symbol)


def test_a_line_that_requires_a_name_is_no_definition_of_it() -> None:
    required = make_definition("a.js", "const parse = require('./parse')", "constant")
    defined = make_definition("parse.js", "function parse (text)", "function")

    assert sort_definitions([required, defined], ()) == [defined]
    assert sort_definitions([required], ()) == [required]


@pytest.mark.parametrize(
    "defined", ["class Shop:\n    def open(self):\n        print()\n", "def shop():\n    print()\n"]
)
async def test_what_the_project_depends_on_is_not_what_code_of_its_name_calls(
    saver: SqliteConversations, defined: str
) -> None:
    files = {
        "shop.py": defined,
        "pyproject.toml": '[project]\nname = "shop"\ndependencies = [\n    "requests>=2",\n]\n',
    }

    answer = await answer_to(make_agent(saver, files), "what does shop depend on?")

    assert "- `requests` in `pyproject.toml` [1], `>=2`" in answer.text
    assert "made by" not in answer.text


ERRORS = {
    "shop/views.py": '''from jinja2 import TemplateNotFound


def show(name):
    """Show a page."""
    try:
        return render(name)
    except TemplateNotFound:
        return None
''',
    "shop/errors.py": "\n".join(f'E_{number} = make("No cart of number {number}", {number})' for number in range(60))
    + '\nE_BODY = make(\n    "Request body is "\n    "too large",\n    413,\n)\n',
    "shop/save.py": 'class Cart:\n    def save(self):\n        raise Closed(f"cart {self.name} is closed already")\n',
    "tests/test_save.py": 'def test_save():\n    assert said == "cart 17 is closed already"\n',
    "docs/sqlalchemy.md": "# Notes\n\nThis plugin did not start in time: wait longer.\n",
    "pyproject.toml": '[project]\nname = "shop"\ndependencies = [\n    "click>=8",\n    "jinja2>=3.1",\n]\n',
}


@pytest.mark.parametrize("log", ["shop.carts.CartGone: cart 7", "Shop.Carts.CartGone: cart 7"])
async def test_an_exception_of_the_repository_itself_comes_from_no_library(
    saver: SqliteConversations, log: str
) -> None:
    answer = await answer_to(make_agent(saver, {"src/cart.py": "raise make_error('CartGone')\n"}), log)

    assert "library" not in answer.text


async def test_a_message_in_a_table_of_errors_is_shown_where_it_stands(saver: SqliteConversations) -> None:
    answer = await answer_to(make_agent(saver, ERRORS), "ShopError: Request body is too large")

    assert answer.text.startswith("`Request body is too large` appears in 1 place:\n\n1. ")
    assert '"too large",' in answer.text


async def test_a_message_is_put_together_where_the_code_does_it_and_not_where_a_test_expects_it(
    saver: SqliteConversations,
) -> None:
    answer = await answer_to(make_agent(saver, ERRORS), "cart books is closed already")

    assert answer.text.startswith("Most of `cart books is closed already` appears in 1 place:")
    assert "1. `Cart.save` in `shop/save.py`\n   - 3 [1]" in answer.text


async def test_a_message_whose_words_are_scattered_is_not_said_to_be_put_together(saver: SqliteConversations) -> None:
    files = {
        "a.py": "# the plugin did\n" + "pass\n" * 9 + "# did not start\n" + "pass\n" * 9 + "# start in time, all\n"
    }
    answer = await answer_to(make_agent(saver, files), "the plugin did not start in time all over")

    assert "appears in" not in answer.text


@pytest.mark.parametrize(
    "question",
    ["what libraries does it use", "Abhängigkeiten?", "what are our dependencies?", "qué dependencias tiene?"],
)
async def test_dependencies_are_shown_in_whatever_words_they_are_asked_for(
    saver: SqliteConversations, question: str
) -> None:
    answer = await answer_to(make_agent(saver, ERRORS), question)

    assert "depends on 2 packages:" in answer.text
    assert "- `click` in `pyproject.toml` [1], `>=8`" in answer.text
    assert answer.found


@pytest.mark.parametrize("question", ["which version of jinja2 do we use", "do we use Jinja2?"])
async def test_the_version_of_a_library_is_shown_where_it_is_declared(
    saver: SqliteConversations, question: str
) -> None:
    answer = await answer_to(make_agent(saver, ERRORS), question)

    assert [one.path for one in answer.citations if one.start_line <= 5 <= one.end_line] == ["pyproject.toml"]
    assert "jinja2" in answer.text


RUBY = (
    "class Till\n  def dispatch!\n    1\n  end\n\n  def dispatch\n    2\n  end\n\n  def run\n"
    "    dispatch!\n  end\nend\n"
)


@pytest.mark.parametrize(
    "question", ["who calls `dispatch!`?", "who calls dispatch!?", "where is `dispatch!` defined?"]
)
async def test_a_name_keeps_the_mark_that_it_ends_in(saver: SqliteConversations, tmp_path: Path, question: str) -> None:
    repository = GitRepo(tmp_path / "shop")
    repository.write("till.rb", RUBY)
    repository.commit()
    async with pinned(repository, tmp_path) as code:
        answer = await answer_to(Agent(IndexedLibrary(code), saver, redact), question)

    assert "dispatch!`" in answer.text
    assert answer.citations[0].start_line == 2


@pytest.mark.parametrize("question", ["show me `pay`!", "where is pay!"])
async def test_a_mark_that_ends_the_sentence_is_no_part_of_a_name(saver: SqliteConversations, question: str) -> None:
    answer = await answer_to(make_agent(saver, {"a.py": "def pay():\n    pass\n"}), question)

    assert answer.text.startswith("`pay` is defined in `a.py` [1]")


@pytest.mark.parametrize(
    ("question", "beginning"),
    [
        ("does package.json exist?", "`package.json` [1] defines no names; its first lines:"),
        ("is there a package.json?", "`package.json` [1] defines no names; its first lines:"),
        ("do we have a web/setup.cfg file?", "There is no `web/setup.cfg` in the "),
    ],
)
async def test_whether_a_file_is_there_is_shown_by_its_first_lines(
    saver: SqliteConversations, question: str, beginning: str
) -> None:
    answer = await answer_to(
        make_agent(saver, {"package.json": '{\n  "name": "shop"\n}\n', "a.py": "x = 1\n"}), question
    )

    assert answer.text.startswith(beginning)


async def test_an_empty_file_is_cited_where_it_stands(saver: SqliteConversations) -> None:
    answer = await answer_to(
        make_agent(saver, {"shop/__init__.py": "", "a.py": "x = 1\n"}), "what is in shop/__init__.py?"
    )

    assert answer.text.startswith("`shop/__init__.py` [1] holds nothing.")
    assert [one.path for one in answer.citations] == ["shop/__init__.py"]


async def test_a_proper_name_that_occurs_nowhere_is_not_found(saver: SqliteConversations) -> None:
    files = {"a.py": "def capital(account):\n    return account.capital\n"}

    answer = await answer_to(make_agent(saver, files), "where is the capital of Narnia kept?")

    assert not answer.found
    assert answer.text.startswith(FRAME)


async def test_what_is_beyond_the_code_is_not_found(saver: SqliteConversations) -> None:
    files = {"a.py": "def capital(account):\n    return account.capital\n"}

    assert not (await answer_to(make_agent(saver, files), "what is the capital of France?")).found


async def test_where_a_setting_is_set_leads_with_its_declaration(saver: SqliteConversations, tmp_path: Path) -> None:
    repository = GitRepo(tmp_path / "shop")
    repository.write("shop/settings.py", 'BODY_LIMIT = int(os.getenv("BODY_LIMIT", "100"))\n')
    repository.write("shop/views.py", "def read(request):\n    return request.body[: settings.BODY_LIMIT]\n")
    repository.commit()
    async with pinned(repository, tmp_path) as code:
        answer = await answer_to(Agent(IndexedLibrary(code), saver, redact), "where is BODY_LIMIT set?")

    assert answer.text.startswith("`BODY_LIMIT`, an environment variable, is")
    assert (answer.citations[0].path, answer.citations[0].start_line) == ("shop/settings.py", 1)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("¿cómo se cancela un pedido?", "`def cancel(order):`"),
        ("где хранятся сертификаты на диске", "No match in the 2 files"),
        ("what states can a job have?", FRAME),
    ],
)
async def test_words_of_another_language_are_found_where_the_code_has_them(
    saver: SqliteConversations, question: str, said: str
) -> None:
    files = {"a.py": "def cancel(order):\n    order.state = 0\n", "ci/x.py": "@task\ndef job():\n    pass\n"}

    assert said in (await answer_to(make_agent(saver, files), question)).text


async def test_each_question_of_a_message_is_answered_in_turn(saver: SqliteConversations) -> None:
    files = {"a.py": "def pay():\n    pass\n\n\ndef buy():\n    pay()\n", "b.py": "def ship():\n    pass\n"}

    answer = await answer_to(make_agent(saver, files), "where is pay defined? who calls it? and where is ship defined?")

    first, second, third = (answer.text.index(f"**{part}") for part in ("where is pay", "who calls", "where is ship"))
    assert "`pay` is defined in `a.py` [1]" in answer.text[first:second]
    assert "1 call of `pay` [1]" in answer.text[second:third]
    assert "`ship` is defined in `b.py`" in answer.text[third:]
    assert {one.path for one in answer.citations} == {"a.py", "b.py"}


@pytest.mark.parametrize(
    "question",
    ["is there a function that ships parcels?", "which functions are there in b.py?", "does this project ship?"],
)
async def test_a_question_of_a_message_that_names_its_subject_is_not_taken_for_one_that_does_not(
    saver: SqliteConversations, question: str
) -> None:
    files = {"a.py": "def pay():\n    pass\n", "b.py": "def ship(parcel):\n    pass\n"}

    answer = await answer_to(make_agent(saver, files), f"where is pay defined? {question}")

    assert "not clear what this refers to" not in answer.text
    assert "`ship`" in answer.text


async def test_a_question_of_a_message_that_refers_to_nothing_is_said_to(saver: SqliteConversations) -> None:
    agent = make_agent(saver, {"a.py": "def pay():\n    pass\n"})

    answer = await answer_to(agent, "how do we deploy this week? who calls it?")

    assert "It is not clear what this refers to." in answer.text


class CodeWithoutRegistrations(FakeCode):
    """Code of whose index the table of what is registered cannot be read."""

    async def registrations(self, kinds: Collection[RegistrationKind]) -> Sequence[RegistrationSite]:
        raise DamagedCatalog("The table of registrations is damaged.")


async def test_a_question_of_a_message_that_cannot_be_looked_up_leaves_the_others(saver: SqliteConversations) -> None:
    code = CodeWithoutRegistrations({"a.py": "def pay():\n    pass\n"})
    agent = Agent(FakeLibrary(code), saver, redact)

    answer = await answer_to(agent, "where is pay defined? which environment variables are there?")

    assert answer.route != "failed"
    assert "`pay` is defined in `a.py` [1]" in answer.text
    assert "The index could not be read: `The table of registrations is damaged.`" in answer.text
