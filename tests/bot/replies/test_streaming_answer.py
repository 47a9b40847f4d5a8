"""Drafts: what a run tells, as people see it."""

from __future__ import annotations

import dataclasses

import pytest

from agent.events import AgentEvent
from agent.ports import Citation
from bot.markdown.splitting import split_markdown
from bot.messages import PlaceLink
from bot.replies.answer_content import LONGEST_NAME, LONGEST_STATUS, StreamingAnswer
from bot.replies.paging import cut_to_stable
from indexer.types import Location
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


def find(*names: str, host: str = "https://git.example.com") -> AgentEvent:
    locations = [Location(path=name, start_line=1, end_line=9) for name in names]
    return event("evidence", locations=locations, urls=[f"{host}/demo/blob/abc/{name}#L1-L9" for name in names])


def test_the_first_places_found_are_linked_until_the_answer_begins() -> None:
    growing = draft()
    growing.take(find("src/a.py", "src/b.py"))
    growing.take(find("src/b.py", "src/c.py", "src/d.py"))
    page = "https://git.example.com/demo/blob/abc/src"
    assert growing.partial_content().found == tuple(
        PlaceLink(name=f"src/{name}.py:1-9", url=f"{page}/{name}.py#L1-L9") for name in "abc"
    )
    assert growing.partial_content().status == "Reading the question …"

    growing.take(event("token", text="Here."))
    assert growing.partial_content().found == ()
    growing.take(event("reset", text=""))
    assert len(growing.partial_content().found) == 3


def test_a_place_pings_nobody_breaks_no_code_and_leads_to_no_other_host() -> None:
    growing = draft()
    growing.take(find("@everyone/`a`\n.py", f"{'deep/' * 40}b.py", host="https://evil.example"))
    hostile, long = growing.partial_content().found
    assert (hostile.url, long.url) == ("", "")
    assert "@everyone" not in hostile.name
    assert not {"`", "\n"} & set(hostile.name)
    assert long.name.startswith("…")
    assert long.name.endswith("deep/b.py:1-9")
    assert len(long.name) <= LONGEST_NAME


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

    assert content.text == f"Events are sent by `Session.send` [[1]]({cited.url})."
    assert content.footer == "demo at 0123456"
    assert [button.action for button in content.buttons] == ["good", "bad"]
    assert {button.value for button in content.buttons} == {"run"}


def test_marks_stay_plain_until_their_citations_are_checked() -> None:
    growing = draft()
    growing.take(event("token", text=f"{ANSWER.text} "))
    assert growing.partial_content().text == f"{ANSWER.text} "


def cite(mark: int, path: str, start: int, url: str | None = None) -> Citation:
    return dataclasses.replace(CITATION, mark=mark, path=path, start_line=start, end_line=start, url=url)


def test_what_has_no_link_is_listed_in_one_line_with_each_path_once() -> None:
    page = "https://git.example.com/demo/blob/abc"
    cited = (cite(1, "a.py", 1), cite(2, "b.py", 2, f"{page}/b.py#L2"), cite(3, "a.py", 9), cite(4, "c.py", 4))
    answer = dataclasses.replace(ANSWER, text="One [1], two [2], three [3][4], two [2].", citations=cited)
    growing = draft()
    growing.take(event("answer", answer=answer))

    two = f"[[2]]({page}/b.py#L2)"
    assert growing.final_content().text == (
        f"One [1], two {two}, three [3][4], two {two}.\n\n[1] `a.py:1`, [3] `:9` · [4] `c.py:4`"
    )


def test_a_mark_in_code_and_a_link_to_another_host_stay_as_they_are() -> None:
    evil = cite(1, "a.py", 1, "https://evil.example/a.py#L1")
    answer = dataclasses.replace(ANSWER, text="See `x[1]` and [2](https://evil.example) [1].", citations=(evil,))
    growing = draft()
    growing.take(event("answer", answer=answer))
    assert growing.final_content().text == "See `x[1]` and 2 [1].\n\n[1] `a.py:1`"


def test_brackets_in_a_path_break_no_link() -> None:
    cited = cite(1, "app/(shop)/page.tsx", 1, "https://git.example.com/demo/blob/abc/app/(shop)/page.tsx#L1")
    growing = draft()
    growing.take(event("answer", answer=dataclasses.replace(ANSWER, text="Here [1].", citations=(cited,))))
    assert (
        growing.final_content().text == "Here [[1]](https://git.example.com/demo/blob/abc/app/%28shop%29/page.tsx#L1)."
    )


def test_a_mark_that_comes_very_often_is_linked_as_often_as_there_is_room() -> None:
    url = f"https://git.example.com/demo/blob/abc/{'x' * 100}.py#L1"
    growing = draft()
    growing.take(
        event(
            "answer", answer=dataclasses.replace(ANSWER, text="One [1]. " * 500, citations=(cite(1, "x.py", 1, url),))
        )
    )
    text = growing.final_content().text
    assert 1 < text.count(url) < 20
    assert text.count("[1]") == 500


def test_no_message_is_cut_within_a_linked_mark() -> None:
    text = "One [[1]](https://git.example.com/demo/blob/abc/a.py#L1). " * 100
    pieces = split_markdown(text, 300, utf16=True)
    assert all(len(piece.text) <= 300 for piece in pieces)
    assert [piece.text.count("[[1]](https") - piece.text.count(".py#L1)") for piece in pieces] == [0] * len(pieces)


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
    with pytest.raises(ValueError, match="has not finished"):
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
