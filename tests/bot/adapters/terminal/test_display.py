"""The terminal: links, colours, progress, and text that cannot get out of its place."""

from __future__ import annotations

import dataclasses
import io
import logging
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from agent.ports import Answer
from bot.adapters.terminal.display import Terminal
from bot.adapters.terminal.progress import LiveAnswer
from bot.adapters.terminal.safe_markdown import SafeMarkdown
from indexer.types import Location, Progress
from tests.fakes.parts import ANSWER, CITATION, answering, event, saying

# What rich itself writes: colours and links, and the cursor movements of a live region.
OWN_SEQUENCES = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;[^\x1b\x07]*\x1b\\|\x1b\[\??[0-9;]*[A-Khl]|\r")


def screen(*, terminal: bool = True) -> Console:
    return Console(
        file=io.StringIO(),
        force_terminal=terminal,
        width=80,
        height=24,
        markup=False,
        emoji=False,
        highlight=False,
        color_system="truecolor" if terminal else None,
        _environ={"TERM": "xterm"},
    )


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def shown(answer: Answer, root: Path | None = None) -> str:
    out = screen()
    Terminal(out=out, err=screen()).show(answer, root)
    return written(out)


def test_a_citation_links_to_its_permalink() -> None:
    cited = dataclasses.replace(CITATION, url="https://git.example/demo/blob/0123/src/session.py#L10-L24")

    text = shown(dataclasses.replace(ANSWER, citations=(cited,)), Path("/demo"))

    assert re.search(r"\x1b\]8;[^;]*;https://git\.example/demo/blob/0123/src/session\.py#L10-L24\x1b\\", text)


def test_a_citation_without_a_permalink_links_to_the_file() -> None:
    assert re.search(
        r"\x1b\]8;[^;]*;file:///demo/src/session\.py\x1b\\src/session\.py:10-24", shown(ANSWER, Path("/demo"))
    )


def test_a_permalink_that_is_no_web_address_is_no_link() -> None:
    cited = dataclasses.replace(CITATION, url="javascript:alert(1)")

    assert "\x1b]8;" not in shown(dataclasses.replace(ANSWER, citations=(cited,)))


def test_a_link_in_a_repositorys_text_is_no_link() -> None:
    text = shown(dataclasses.replace(saying("see [this](https://evil.example) <https://evil.example>"), citations=()))

    assert "\x1b]8;" not in text


def test_an_excerpt_is_coloured() -> None:
    assert re.search(r"\x1b\[[0-9;]*m.*def", shown(saying("```python\ndef f(): pass\n```")))


@given(st.text(st.sampled_from("ab\x1b\x07\x9b\x08\r\n\t[]8;;m#`*_-> &x202e;\u202e\ud800/1"), max_size=60))
def test_no_text_steers_the_terminal(text: str) -> None:
    left = OWN_SEQUENCES.sub("", shown(dataclasses.replace(saying(text), citations=())))

    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", left)


def test_an_entity_is_cleaned_after_it_was_decoded() -> None:
    out = screen()

    out.print(SafeMarkdown("a &#x202e; b"))

    assert "\u202e" not in written(out)


@given(st.text(max_size=20))
def test_no_path_steers_the_terminal(path: str) -> None:
    cited = dataclasses.replace(CITATION, path=path + "\x1b]0;x\x07\n[bold]")

    left = OWN_SEQUENCES.sub("", shown(dataclasses.replace(saying("x"), citations=(cited,))))

    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", left)
    assert "[bold]:10-24" in left


async def test_stages_and_text_show_while_the_answer_grows() -> None:
    out = screen()
    draft = LiveAnswer()
    for each in answering(ANSWER)[:2]:
        draft.take(each)

    out.print(draft)

    assert "Events are sent by" in written(out)
    assert "Searching `send`" in written(out)


def test_a_tool_is_named_with_its_target_while_it_works() -> None:
    out = screen()
    draft = LiveAnswer()
    draft.take(event("tool_start", tool="read_file", args={}, label="Reading", shown="src/app.py\x1b]0;x\x07"))

    out.print(draft)

    assert "Reading `src/app.py" in written(out)
    assert "\x1b]0" not in written(out)


def test_the_first_places_are_linked_while_there_is_no_text() -> None:
    out = screen()
    draft = LiveAnswer(Path("/demo"))
    places = [Location(path=f"src/{name}.py", start_line=1, end_line=9) for name in ("a\x1b", "b", "c", "d")]
    url = "https://git.example/demo/blob/0123/src/a.py#L1-L9"
    draft.take(event("evidence", locations=places, urls=[url, None, None, None]))

    out.print(draft)
    waiting = written(out)
    draft.take(event("token", text="It is sent."))
    out.print(draft)

    assert re.search(r"\x1b\]8;[^;]*;https://git\.example/demo/blob/0123/src/a\.py#L1-L9\x1b\\  src/a", waiting)
    assert "file:///demo/src/b" in waiting
    assert (waiting.count(".py:1-9"), written(out).count(".py:1-9")) == (3, 3)
    assert "a\x1b" not in waiting


def test_a_long_draft_shows_its_end_within_the_window() -> None:
    out = screen(terminal=False)
    draft = LiveAnswer()
    draft.take(event("token", text="\n\n".join(f"paragraph {number}" for number in range(100))))

    out.print(draft)

    lines = written(out).splitlines()
    assert len(lines) < 24
    assert "paragraph 99" in "".join(lines)


def test_no_line_of_the_log_stands_in_the_live_display() -> None:
    err = screen()
    written: list[tuple[str, bool]] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            written.append((record.getMessage(), "\x1b[?25h" in written_to(err)))  # the cursor is shown again

    def written_to(console: Console) -> str:
        return console.file.getvalue() if isinstance(console.file, io.StringIO) else ""

    root, kept = logging.getLogger(), Kept()
    root.addHandler(kept)
    try:
        with Terminal(out=screen(), err=err).watch() as take:
            for each in answering(ANSWER):
                logging.getLogger("agent").warning("a model failed")
                take(each)
    finally:
        root.removeHandler(kept)

    assert written == [("a model failed", True)] * 3


def test_following_prints_nothing_where_there_is_no_terminal() -> None:
    err = screen(terminal=False)

    with Terminal(out=screen(terminal=False), err=err).watch() as take:
        for each in answering(ANSWER):
            take(each)

    assert written(err) == ""


def test_progress_shows_its_stage_on_a_terminal() -> None:
    err = screen()
    with Terminal(out=screen(), err=err).show_indexing(patience=0) as advance:
        advance(Progress(stage="parsing", done=3, total=10))

    assert "Reading code" in written(err)
    assert "3 of 10 files" in written(err)


def test_progress_is_silent_until_its_patience_runs_out() -> None:
    err = screen()
    with Terminal(out=screen(), err=err).show_indexing(patience=1000) as advance:
        advance(Progress(stage="parsing", done=3, total=10))

    assert written(err) == ""
