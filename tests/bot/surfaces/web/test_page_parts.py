"""The parts of the page by themselves: Markdown as HTML, code as HTML, the files that are shipped."""

from __future__ import annotations

import asyncio
import hashlib
import re
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markupsafe import Markup

from agent import AgentEvent
from bot.surfaces.web import web_surface
from bot.surfaces.web.answer_markup import AnswerMarkup, MarkLink
from bot.surfaces.web.ask_pages import WrittenAnswers
from bot.surfaces.web.cited_code import MEMORY, WORKER, CodeHighlighter
from bot.surfaces.web.highlight_worker import split_tokens
from bot.surfaces.web.live_turns import LiveTurn, grow_text
from bot.surfaces.web.page_files import STATIC_FILES
from bot.surfaces.web.run_course import RunCourse
from indexer import ConfinedWorker, redact_secrets
from tests.bot.surfaces.cores import SECRET
from tests.waiting import LIMIT_SECONDS

FOLDER = Path(web_surface.__file__).parent
HTMX = "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"
PIECES = st.sampled_from(
    ["<script>", "</p>", "[1]", "[a](", "javascript:alert(1)", ")", "![", "](https://x.example)", "`", "```\n", "\n\n",
     "<https://x.example>", "**", "_", "&lt;", "|", "- ", "> ", "\\", '"', "'", "<img src=x onerror=y>", "x"]
)  # fmt: skip
ALLOWED = {*"p strong em code pre ul ol li a h1 h2 h3 h4 h5 h6 table thead tbody tr th td blockquote hr br s".split()}


class Tags(HTMLParser):
    """Collects the tags and the attributes of some HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def highlighter() -> Iterator[CodeHighlighter]:
    worker = ConfinedWorker(WORKER, seconds=20.0, memory=MEMORY)
    yield CodeHighlighter(worker.exchange)
    worker.close()


@given(st.lists(PIECES, max_size=25).map("".join))
@example('[x](JaVaScRiPt:alert(1)) [y](data:text/html,x) [z](https://user@x.example/) <a href="x">')
@example("[a]() [b](https://x.example)")
def test_whatever_an_answer_says_only_harmless_tags_come_of_it(text: str) -> None:
    tags = Tags()
    tags.feed(AnswerMarkup().write(text, {1: MarkLink(href="/turns/t/code/1", label='"><script>')}))

    for tag, attributes in tags.found:
        assert tag in ALLOWED
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        if tag == "a":
            assert re.match(r"https://x\.example|/turns/t/code/1$", attributes["href"] or "")


class Idle:
    """A worker that has no answer."""

    def exchange(self, body: bytes) -> bytes | None:
        return None


async def test_a_text_is_written_once_beside_the_loop_however_often_it_is_shown() -> None:
    threads: list[str] = []

    class Noting(AnswerMarkup):
        def write(self, text: str, *parts: Any, **more: Any) -> Markup:
            threads.append(threading.current_thread().name)
            return super().write(text, *parts, **more)

    written = WrittenAnswers(Noting(), CodeHighlighter(Idle().exchange))
    course = RunCourse(str)
    turns = [
        LiveTurn(id=name, conversation="c", owner="o", question="?", asked_at=0.0, course=course, text="**a**" * 9)
        for name in "123"
    ]
    for _ in range(5):
        await asyncio.gather(*[written.prepare(turn, turn.text) for turn in turns * 5])

    assert len(threads) == len(turns)
    assert threading.main_thread().name not in threads
    assert written.get(turns[0], turns[0].text).startswith("<p><strong>")
    assert written.get(turns[0], "**<b>**") == "**&lt;b&gt;**"


def test_what_is_cut_shows_no_part_of_a_secret() -> None:
    course = RunCourse(redact_secrets)
    shown = f"{'x' * 280} {SECRET}"

    payload = {"tool": "grep", "shown": shown}
    course.take(AgentEvent(kind="tool_start", run_id="1", iteration=0, ts=0.0, payload=payload))

    (use,) = course.tools
    assert use.shown.startswith("xxx")
    assert SECRET[:8] not in use.shown


def test_marks_are_links_but_in_code_and_in_links() -> None:
    link = MarkLink(href="/turns/t/code/1", label="a.py:1")

    written = AnswerMarkup().write("So [1], `[1]`, [see [1]](https://x.example) and [2].\n\n    [1]", {1: link})

    assert written.count('class="cite"') == 1
    assert "[2]" in written


@given(st.text(alphabet="ab \n\t\"'#(){}<>é\x0c\u2028", max_size=80))
def test_the_pieces_of_highlighted_lines_are_the_lines(text: str) -> None:
    lines = split_tokens(text, "a.py")

    assert ["".join(piece for _, piece in line) for line in lines] == text.split("\n")


async def test_code_that_holds_the_lexer_up_takes_one_thread_and_others_are_shown_plain() -> None:
    began, ends, answers = threading.Semaphore(0), threading.Event(), []

    class Busy:
        def exchange(self, body: bytes) -> bytes | None:
            began.release()
            ends.wait(LIMIT_SECONDS)
            answers.append(body)
            return None

    highlighter = CodeHighlighter(Busy().exchange, patience=0.01)
    held = asyncio.create_task(highlighter.highlight("slow.py", "x"))
    assert await asyncio.to_thread(began.acquire, timeout=LIMIT_SECONDS)
    try:
        others = await asyncio.gather(*[highlighter.highlight("a.py", "<b>") for _ in range(20)])
        assert others == [["&lt;b&gt;"]] * 20
    finally:
        ends.set()
    assert await held == ["x"]
    assert len(answers) == 1


async def test_code_is_lexed_from_the_beginning_of_its_file(highlighter: CodeHighlighter) -> None:
    before, shown = 'def f():\n    """Return\n', '    what for it is.\n    """\n    return g()'

    lines = await highlighter.highlight("a.py", shown, before=before)

    assert "what for it is." in lines[0]
    assert 'class="k"' not in lines[0]
    assert '<span class="k">return</span>' in lines[2]


async def test_code_is_highlighted_by_its_name_and_everything_in_it_is_text(highlighter: CodeHighlighter) -> None:
    python = await highlighter.highlight("shop/a.py", "\n\ndef f():\n    return '<b>'")
    unknown = await highlighter.highlight("no.such-kind", "<script>\rx")

    assert python[2].startswith('<span class="k">def</span>')
    assert "&lt;b&gt;" in python[3]
    assert len(python) == 4
    assert unknown == ["&lt;script&gt;\N{REPLACEMENT CHARACTER}x"]


async def test_code_that_holds_the_lexer_up_is_shown_plain() -> None:
    class Silent:
        def exchange(self, body: bytes) -> bytes | None:
            return None

    assert await CodeHighlighter(Silent().exchange).highlight("a.py", "def f(): <b>") == ["def f(): &lt;b&gt;"]


def test_a_worker_that_takes_too_long_is_ended_and_the_next_request_is_answered() -> None:
    worker = ConfinedWorker("tests.fakes.slow_worker", seconds=2.0, memory=MEMORY)
    try:
        assert worker.exchange(b"loop") is None
        assert worker.exchange(b"echo") == b"echo"
    finally:
        worker.close()


def test_what_browsers_load_is_what_was_vendored_and_is_shipped_with_its_licence() -> None:
    shipped = {path.name for path in (FOLDER / "static").iterdir()}
    declared = (FOLDER.parents[2] / "pyproject.toml").read_text(encoding="utf-8")

    assert shipped == {*STATIC_FILES, "htmx.LICENSE"}
    assert hashlib.sha256((FOLDER / "static" / "htmx-2.0.11.min.js").read_bytes()).hexdigest() == HTMX
    assert all(f'"surfaces/web/{each}"' in declared for each in ("templates/*.html", "static/*"))
    assert '"bot/surfaces/web/static/htmx.LICENSE"' in declared


def test_templates_hold_no_script_and_no_style_of_their_own() -> None:
    for path in (FOLDER / "templates").iterdir():
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|<script(?! src=)|hx-on|\|\s*safe|https?://", text), path.name


TEXT = (
    "It is read by `read_file` and **written again** [1].\n\n```python\nfor each in range(3):\n    print(each)\n```\n\n"
    "- see [the page](https://git.example/x y)\n- and the rest of it, which goes on for a while\n"
)


@pytest.mark.parametrize("part", [1, 24, 200, len(TEXT)])
def test_text_grows_evenly_and_never_ends_within_a_word_or_markup(part: int) -> None:
    shown, seen = "", [""]
    for end in range(part, len(TEXT) + part, part):
        come = TEXT[:end]
        while (grown := grow_text(shown, come)) != shown:
            assert grown.startswith(shown)
            assert come.startswith(grown)
            shown = grown
            seen.append(shown)

    assert len(shown) > len(TEXT) - 8  # what ends in no space may still become another word
    assert max(len(after) - len(before) for before, after in pairwise(seen)) <= max(60, len(TEXT) // 3)
    for each in seen:
        last = each.rpartition("\n")[2]
        assert not last or last.endswith(" ")
        assert last.count("**") % 2 == last.count("`") % 2 == 0
        assert last.count("[") == last.count("]")


def test_text_that_takes_the_place_of_other_text_is_shown_at_once() -> None:
    assert grow_text("It is there, and ", "It is not there.") == "It is not there."
