"""Drafts: what a run tells, as people see it."""

from __future__ import annotations

import dataclasses

import pytest

from bot.replies.answer_content import LONGEST_STATUS, StreamingAnswer
from bot.replies.paging import cut_to_stable
from tests.fakes.parts import ANSWER, CITATION, event

HOSTS = ("git.example.com",)


def draft() -> StreamingAnswer:
    return StreamingAnswer("run", HOSTS)


def test_stages_and_tools_are_told_by_name() -> None:
    growing = draft()
    growing.take(event("step_start", node="retrieval", stage="Looking up `send`"))
    assert growing.partial_content().status == "Looking up `send` …"

    growing.take(event("tool_start", tool="tide", args={}, label="Looking at the tide of", shown="Brest"))
    assert growing.partial_content().status == "Looking at the tide of `Brest` …"

    growing.take(event("tool_start", tool="odd_tool", args={}, label="Using", shown=""))
    assert growing.partial_content().status == "Using `odd_tool` …"


def test_what_is_not_to_be_seen_changes_nothing() -> None:
    assert not draft().take(event("model_end", model="m"))


def test_text_grows_until_it_is_taken_back() -> None:
    growing = draft()
    for text in ("One ", "two"):
        growing.take(event("token", text=text))
    assert growing.partial_content().text == "One two"

    growing.take(event("reset", text="Three"))
    assert growing.partial_content().text == "Three"


def test_text_and_stages_ping_nobody() -> None:
    growing = draft()
    growing.take(event("token", text="@everyone"))
    growing.take(event("step_start", node="n", stage="<!channel> https://evil.example " + "x" * 500))

    assert "@everyone" not in growing.partial_content().text
    assert "<!channel>" not in growing.partial_content().status
    assert len(growing.partial_content().status) <= LONGEST_STATUS + 2


def test_a_place_in_the_queue_is_told() -> None:
    growing = draft()
    growing.wait(1)
    assert growing.partial_content().status == "Waiting: 1 question is ahead of yours …"
    growing.wait(3)
    assert growing.partial_content().status == "Waiting: 3 questions are ahead of yours …"


def test_a_settled_answer_links_its_lines() -> None:
    cited = dataclasses.replace(CITATION, url="https://git.example.com/demo/blob/abc/src/session.py#L10-L24")
    growing = draft()
    growing.take(event("answer", answer=dataclasses.replace(ANSWER, citations=(cited,))))

    content = growing.final_content("demo at 0123456")

    assert content.text == f"{ANSWER.text}\n\n[1] [`src/session.py:10-24`]({cited.url})"
    assert content.footer == "demo at 0123456"
    assert [button.action for button in content.buttons] == ["good", "bad"]
    assert {button.value for button in content.buttons} == {"run"}


def test_lines_on_another_host_are_named_without_a_link() -> None:
    growing = draft()
    growing.take(event("answer", answer=dataclasses.replace(ANSWER, citations=(CITATION,))))

    assert growing.final_content().text.endswith("[1] `src/session.py:10-24`")


@pytest.mark.parametrize(("route", "actions"), [("paused", ["approve", "abort"]), ("failed", []), ("stopped", [])])
def test_the_buttons_fit_how_the_run_ended(route: str, actions: list[str]) -> None:
    growing = draft()
    growing.take(event("answer", answer=dataclasses.replace(ANSWER, route=route)))

    assert [button.action for button in growing.final_content().buttons] == actions


def test_there_is_nothing_to_settle_before_the_answer() -> None:
    with pytest.raises(ValueError, match="has not come"):
        draft().final_content()


@pytest.mark.parametrize(
    ("text", "sure"),
    [
        ("One two thr", "One two "),
        ("See `a b", "See "),
        ("See [a b](http", "See "),
        ("A line\nmore `code` and", "A line\nmore `code` "),
        ("```py\nx = 1\ny", "```py\nx = 1\n"),
        ("word", ""),
    ],
)
def test_only_what_cannot_change_any_more_is_streamed(text: str, sure: str) -> None:
    assert cut_to_stable(text) == sure
