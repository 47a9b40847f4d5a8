"""The intent of a question decides what is looked up, whatever its wording; names are found by lookups."""

from __future__ import annotations

import pytest

from agent.evidence.intent_router import recognise_intent
from agent.evidence.rule_router import route_by_rules
from agent.state import Lookup
from tests.fakes.code import FakeCode
from tests.fakes.shop import SHOP

COMMON_WORDS = {
    "app/mail.py": "def send(to):\n    return to\n\n\ndef flush():\n    return send('x')\n",
    "packages/orders/cart.py": "from app.mail import send\n\n\ndef order():\n    return send('y')\n",
    "requirements.txt": "celery==5.4\n",
    "app/jobs.py": "import celery\n\nqueue = celery.Celery()\n",
}


@pytest.mark.parametrize(
    ("question", "lookup", "name"),
    [
        ("who calls parse_date?", "callers", "parse_date"),
        ("callers of the function send()", "callers", "send"),
        ("what is called by send?", "callees", "send"),
        ("where is MAX_RETRIES used?", "usages", "MAX_RETRIES"),
        ("who uses PaymentSession", "usages", "PaymentSession"),
        ("tests for parse_date", "tests", "parse_date"),
        ("where parse_date is defined", "definition", "parse_date"),
        ("what does parse_date do?", "definition", "parse_date"),
        ("parse_date", "definition", "parse_date"),
    ],
)
async def test_a_question_about_one_name_is_looked_up(question: str, lookup: Lookup, name: str) -> None:
    [request, *_] = (await route_by_rules(question, FakeCode(SHOP)))["requests"]

    assert (request["lookup"], request["query"]) == (lookup, name)


@pytest.mark.parametrize(
    ("question", "lookup"),
    [
        ("send callers pls", "callers"),
        ("wer ruft send auf?", "callers"),
        ("кто вызывает send?", "callers"),
        ("send は誰が呼びますか？", "callers"),
        ("где используется send?", "usages"),
    ],
)
async def test_callers_are_looked_up_in_any_wording_and_language(question: str, lookup: Lookup) -> None:
    [request] = (await route_by_rules(question, FakeCode(COMMON_WORDS)))["requests"]

    assert (request["lookup"], request["query"]) == (lookup, "send")


@pytest.mark.parametrize("question", ["how do we send the mails to customers?", "where do we send reminders?"])
async def test_a_common_word_is_no_name_where_none_is_expected(question: str) -> None:
    asked = await recognise_intent(question, FakeCode(COMMON_WORDS))

    assert asked.names == ()


@pytest.mark.parametrize(
    ("question", "folder"),
    [
        ("who calls send in packages/orders?", "packages/orders"),
        ("who calls send in app/mail.py?", "app/mail.py"),
        ("who calls send in mail.py?", "app/mail.py"),
        ("callers of send in the packages folder", "packages"),
    ],
)
async def test_calls_are_looked_up_within_what_the_question_names(question: str, folder: str) -> None:
    [request] = (await route_by_rules(question, FakeCode(COMMON_WORDS)))["requests"]

    assert (request["lookup"], request["query"], request["folders"]) == ("callers", "send", [folder])


@pytest.mark.parametrize(
    ("question", "source_types"),
    [
        ("usages of send outside tests", ["code", "doc", "config"]),
        ("send used where, not counting the unit tests", ["code", "doc", "config"]),
        ("who calls send, only in tests?", ["test"]),
        ("is send used in tests?", ["test"]),
        ("who calls send?", []),
    ],
)
async def test_uses_are_looked_up_outside_or_inside_of_the_tests(question: str, source_types: list[str]) -> None:
    [request] = (await route_by_rules(question, FakeCode(COMMON_WORDS)))["requests"]

    assert request["query"] == "send"
    assert request["lookup"] in {"callers", "usages"}
    assert request["source_types"] == source_types


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("who calls PARSE_DATE?", "PARSE_DATE"),
        ("who calls paymentsession?", "PaymentSession"),
        ("usages of PaymentSessions pls", "PaymentSession"),
        ("who calls gro\u0308\u00dfe?", "gr\u00f6\u00dfe"),
    ],
)
async def test_a_name_is_found_in_another_case_number_and_unicode_form(question: str, name: str) -> None:
    code = FakeCode({**SHOP, "shop/sizes.py": "def gr\u00f6\u00dfe():\n    return 1\n"})

    chosen = await route_by_rules(question, code)

    assert [(one["query"], chosen["unknown"]) for one in chosen["requests"]] == [(name, [])]


async def test_a_question_that_is_not_sure_says_what_else_it_may_mean() -> None:
    unsure = await route_by_rules("anything odd about `parse_date`", FakeCode(SHOP))
    sure = await route_by_rules("who calls parse_date?", FakeCode(SHOP))

    assert unsure["meanings"]
    assert all("`parse_date`" in one for one in unsure["meanings"])
    assert "meanings" not in sure


async def test_what_an_unknown_name_calls_is_not_asked_for() -> None:
    code = FakeCode({**COMMON_WORDS, "tests/test_http.py": "def httpie():\n    return 1\n"})

    [request] = (await route_by_rules("what does httpie depend on", code))["requests"]

    assert (request["lookup"], request["parts"]["contract"]) == ("contracts", "requirement")


async def test_a_folder_of_a_path_is_no_name_of_its_own() -> None:
    code = FakeCode({**COMMON_WORDS, "tests/test_all.py": "def packages():\n    return 1\n"})

    [request] = (await route_by_rules("who is calling send in packages/orders/cart.py", code))["requests"]

    assert (request["query"], request["folders"]) == ("send", ["packages/orders/cart.py"])


@pytest.mark.parametrize(
    "link",
    [
        "https://github.com/shop/app/blob/0a1b2c3/app/mail.py#L5-L6",
        "see <https://git.example/shop/app/-/blob/main/app/mail.py#L5-6|mail.py>",
        "https://gitea.example/shop/app/src/commit/0a1b2c3d/app/mail.py#L5-L6 what does this do?",
        "<https://bitbucket.org/shop/app/src/0a1b2c3/app/mail.py#lines-5:6>",
    ],
)
async def test_a_link_to_lines_is_those_lines(link: str) -> None:
    [request] = (await route_by_rules(link, FakeCode(COMMON_WORDS)))["requests"]

    assert (request["lookup"], request["path"], request["start_line"], request["end_line"]) == (
        "lines",
        "app/mail.py",
        5,
        6,
    )


@pytest.mark.parametrize("question", ["do we still use celery?", "celery leftovers?", "can we drop celery"])
async def test_a_library_is_looked_for_by_the_lines_that_say_it(question: str) -> None:
    chosen = await route_by_rules(question, FakeCode(COMMON_WORDS))

    assert [(one["lookup"], one["query"]) for one in chosen["requests"]] == [("usages", "celery")]
    assert chosen["unknown"] == ["celery"]


@pytest.mark.parametrize(
    ("question", "lookup"),
    [
        ("who do i ping about app/mail.py", "people"),
        ("high level overview?", "overview"),
        ("how to write my own exporter", "prose"),
        ("when was send introduced?", "changes"),
        ("explain how the mails are delivered", "prose"),
        ("app/mail.py contents", "file"),
    ],
)
async def test_what_has_an_answer_of_its_own_is_asked_for_it(question: str, lookup: Lookup) -> None:
    [request, *_] = (await route_by_rules(question, FakeCode(COMMON_WORDS)))["requests"]

    assert request["lookup"] == lookup


@pytest.mark.parametrize(
    ("question", "lookup"),
    [
        ("what is this project about?", "overview"),
        ("give me an overview", "overview"),
        ("overview", "definition"),
        ("what does the project function do?", "definition"),
        ("where is project defined?", "definition"),
    ],
)
async def test_a_common_noun_is_no_name_in_a_question_about_the_whole(question: str, lookup: Lookup) -> None:
    code = FakeCode({"app.py": "\n\n".join(f"def {name}():\n    return 1\n" for name in ("project", "overview"))})

    [request, *_] = (await route_by_rules(question, code))["requests"]

    assert request["lookup"] == lookup


async def test_what_else_a_question_may_want_comes_with_its_likeliest_intent() -> None:
    asked = await recognise_intent("send retry?", FakeCode(COMMON_WORDS))

    assert len(asked.alternatives) == 2
    assert asked.name not in asked.alternatives
