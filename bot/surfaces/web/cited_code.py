"""The cited code of an answer at its commit, and its lines as HTML: all text is escaped."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup, escape

from bot.markdown import replace_control_characters
from bot.ports import RefSource, Repositories
from bot.surfaces.ask_events import CitedPlace
from bot.surfaces.web.answer_markup import AnswerMarkup, Fence
from indexer import IndexerError

AROUND = 8  # lines before and after those that are cited
MAX_CITED = 240  # of one citation
MAX_LINES = 400
MAX_BEFORE = 200_000  # characters of a file before what is shown, which lexers begin with
LONGEST_LINE = 1_000  # characters of a line that are shown
SECONDS = 2.0  # of processor time that lexing may take; what takes longer is shown plain
WAIT_SECONDS = 2.0  # seconds for which code waits until other code is highlighted
MEMORY = 1 << 29
WORKER = "bot.surfaces.web.highlight_worker"
_KIND = re.compile(r"(?:k|s|c|m|g|n[a-z])[a-z0-9]{0,2}")  # those that the style knows: no names, no brackets

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class CitedExcerpt:
    """Cited lines with their surroundings. Without `text`, `problem` gives the reason."""

    repository: str
    commit: str
    path: str
    first_line: int
    last_line: int
    url: str | None = None
    begins: int = 1
    text: str = ""
    problem: str = ""

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers of the lines."""
        return range(self.begins, self.begins + self.text.count("\n") + 1)

    def is_cited(self, number: int) -> bool:
        """Whether a line is cited."""
        return self.first_line <= number <= self.last_line


class CitedCode:
    """Reads cited code, with secrets masked."""

    def __init__(
        self, library: Repositories, mask: Callable[[str], str], refs: Mapping[str, RefSource] | None = None
    ) -> None:
        self._library = library
        self._mask = mask
        self._refs = refs or {}

    async def read(self, place: CitedPlace | CitedExcerpt) -> CitedExcerpt:
        """Read a place, or explain why it cannot be read."""
        bare = CitedExcerpt(
            repository=place.repository, commit=place.commit, path=place.path, first_line=place.first_line,
            last_line=place.last_line, url=place.url,
        )  # fmt: skip
        if not place.path:
            return replace(bare, problem="The answer cites the commit itself.")
        try:
            first = max(1, place.first_line - AROUND)
            text = await self._read_lines(bare, first, min(place.last_line, place.first_line + MAX_CITED) + AROUND)
        except IndexerError as error:
            log.info("a cited place could not be read: %s", error)
            return replace(bare, problem=self._mask(str(error)))
        if text is None:
            return replace(bare, problem=f"This was read at {bare.commit[:12]}; the index is at another commit now.")
        return replace(bare, begins=first, text=text)

    async def read_before(self, excerpt: CitedExcerpt) -> str:
        """Read the file's lines before an excerpt; nothing if there are too many, or they are gone."""
        try:
            text = await self._read_lines(excerpt, 1, excerpt.begins - 1) if excerpt.begins > 1 else None
        except IndexerError:
            return ""
        return f"{text}\n" if text is not None and len(text) < MAX_BEFORE else ""

    async def _read_lines(self, place: CitedPlace | CitedExcerpt, first: int, last: int) -> str | None:
        """Read lines at their commit; None if that is no longer indexed and the repository lacks it."""
        code = await self._library.pin_existing(place.repository)
        if code.commit.sha == place.commit:
            return self._clean((await code.read(place.path, first, last)).text)
        source = self._refs.get(place.repository)
        lines = await source.read_file(place.commit, place.path) if source is not None else None
        return self._clean("\n".join(lines[first - 1 : last])) if lines is not None else None

    def _clean(self, text: str) -> str:
        """Mask secrets, and characters that hide text or change its direction, which would falsify code."""
        return replace_control_characters(self._mask(text))


class CodeHighlighter:
    """Highlights code if that is possible in time.

    One thread waits for the worker, however many people want to see code, because questions need
    the threads.
    """

    def __init__(self, exchange: Callable[[bytes], bytes | None], *, patience: float = WAIT_SECONDS) -> None:
        self._ask_worker = exchange
        self._patience = patience
        self._is_free = asyncio.Semaphore(1)

    async def highlight(self, path: str, text: str, *, before: str = "", language: str = "") -> Sequence[Markup]:
        """Return the lines of a piece of code as HTML; its path determines the language, unless that is named.

        `before` is the text before it in its file: within a docstring, for example, code is text.
        """
        lines = [cut_line(line) for line in text.split("\n")[:MAX_LINES]]
        code, skip = before.replace("\r", "\N{REPLACEMENT CHARACTER}") + "\n".join(lines), before.count("\n")
        request = json.dumps({"path": path, "language": language, "code": code, "skip": skip}).encode()
        answer = await self._exchange(request)
        pieces = json.loads(answer) if answer is not None else []
        if ["".join(text for _, text in line) for line in pieces] != lines:  # a lexer that changes the text is wrong
            return [escape(line) for line in lines]
        return [_join(line) for line in pieces]

    async def highlight_fences(self, markup: AnswerMarkup, text: str) -> Mapping[Fence, Markup]:
        """Return short fenced code blocks with a language as HTML."""
        fences = await asyncio.to_thread(markup.find_fences, text)
        return {
            fence: Markup("\n").join(await self.highlight("", fence.code, language=fence.language))
            for fence in fences
            if fence.code.count("\n") < MAX_LINES
        }

    async def _exchange(self, request: bytes) -> bytes | None:
        """Return the worker's reply; None if others keep it busy for too long."""
        try:
            async with asyncio.timeout(self._patience):
                await self._is_free.acquire()
        except TimeoutError:
            return None
        try:
            return await asyncio.to_thread(self._ask_worker, request)
        finally:
            self._is_free.release()


async def number_lines(
    cited: CitedCode, highlighter: CodeHighlighter, excerpt: CitedExcerpt
) -> Sequence[tuple[int, Markup]]:
    """Return the lines of an excerpt as HTML, with numbers."""
    before = await cited.read_before(excerpt)
    lines = await highlighter.highlight(excerpt.path, excerpt.text, before=before)
    return [*zip(excerpt.numbers, lines, strict=False)]


def cut_line(line: str) -> str:
    """Return a line, or the beginning of a long one, ignoring line ends known only to a lexer."""
    shown = line.replace("\r", "\N{REPLACEMENT CHARACTER}")
    return shown if len(shown) <= LONGEST_LINE else f"{shown[: LONGEST_LINE - 1]}…"


def _join(pieces: Sequence[tuple[str, str]]) -> Markup:
    return Markup("").join(
        Markup('<span class="{}">{}</span>').format(kind, text) if _KIND.fullmatch(kind) else escape(text)
        for kind, text in pieces
    )
