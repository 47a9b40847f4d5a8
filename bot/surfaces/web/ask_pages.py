"""The conversation: asking, following a growing answer, its cited code, and how it was found."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping

from cachetools import LRUCache
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, Router

from bot.http.connections import keep_open
from bot.http.event_streams import EventStream, write_event
from bot.markdown import format_location
from bot.surfaces.ask_events import Answered, CitedPlace
from bot.surfaces.team_surfaces import Late
from bot.surfaces.web.answer_markup import AnswerMarkup, MarkLink
from bot.surfaces.web.cited_code import CodeHighlighter, number_lines
from bot.surfaces.web.live_turns import LiveConversation, LiveTurn, Refusal
from bot.surfaces.web.page_files import PageFiles, format_seconds
from bot.surfaces.web.repository_pages import describe_repositories
from bot.surfaces.web.request_guard import SHARED, RequestGuard, WebSession
from bot.surfaces.web.run_course import AgentGraphDrawing
from bot.surfaces.web.web_core import WebCore, WebPages, send_html

STARTERS = (
    "How do I run the tests?",
    "What changed recently?",
    "Which settings are there?",
)
_MAX_EARLIER = 8
_MAX_WRITTEN = 8_000_000  # characters of HTML that are kept
_GONE = (
    "This conversation is no longer available, or not for you. Conversations are lost when citebot restarts,"
    " unless an answer was shared."
)


class AskPages(WebPages):
    """The pages for asking."""

    def __init__(
        self, core: Late[WebCore], files: PageFiles, guard: RequestGuard, highlighter: CodeHighlighter
    ) -> None:
        super().__init__(core, files, guard, highlighter)
        self._written = WrittenAnswers(self._markup, highlighter)
        self._drawing = AgentGraphDrawing(format_seconds)
        files.define("write_answer", self._written.get)
        files.define("write_state", self._markup.write)
        files.define("name_place", name_place)

    def join(self, router: Router) -> None:
        """Add the paths to the server's."""
        guard = self._guard
        router.routes += [
            Route("/", guard.require_session(self.show_start)),
            Route("/c/{conversation}", guard.require_session(self.show_conversation)),
            Route("/ask", guard.require_form(self.ask), methods=["POST"]),
            Route("/turns/{turn}/events", guard.require_session(self.stream)),
            Route("/turns/{turn}/code/{mark}", guard.require_session(self.show_code)),
            Route("/turns/{turn}/course", guard.require_session(self.show_course)),
            Route("/turns/{turn}/stop", guard.require_form(self.stop), methods=["POST"]),
            Route("/turns/{turn}/rate", guard.require_form(self.rate), methods=["POST"]),
            Route("/turns/{turn}/share", guard.require_form(self.share), methods=["POST"]),
            Route("/turns/{turn}/withdraw", guard.require_form(self.withdraw), methods=["POST"]),
            Route(f"{SHARED}{{turn}}", guard.require_session(self.show_shared)),
        ]

    async def show_start(self, _: Request, session: WebSession) -> Response:
        """Show an empty conversation."""
        return await self._show_page(session, None)

    async def show_conversation(self, request: Request, session: WebSession) -> Response:
        """Show a conversation so far, with the sources of its newest answer."""
        conversation = self._core.get().turns.find_conversation(session.principal, request.path_params["conversation"])
        if conversation is None:
            raise HTTPException(404, _GONE)
        turn = conversation.turns[-1]
        return await self._show_page(session, conversation, panel=await self._show_behind(turn))

    async def ask(self, request: Request, session: WebSession, fields: Mapping[str, str]) -> Response:
        """Take a question, and show its turn, which runs in the background."""
        core, is_part = self._core.get(), "HX-Request" in request.headers
        conversation = None
        if name := fields.get("conversation", ""):
            conversation = core.turns.find_conversation(session.principal, name)
            if conversation is None:
                raise HTTPException(404, _GONE)
        question = fields.get("question", "")
        remark = await core.questions.describe_renewal(session.principal, fields.get("again", ""))
        try:
            turn = core.turns.begin(
                core.questions, session.principal, question, repository=fields.get("repository") or None,
                conversation=conversation, remark=remark,
            )  # fmt: skip
        except Refusal as refusal:
            return await self._refuse(session, conversation, question, str(refusal), is_part=is_part)
        address = f"/c/{turn.conversation}"
        if not is_part:
            return RedirectResponse(address, 303)
        return send_html(self._begin_turn(turn, session), {"HX-Push-Url": address})

    async def stream(self, request: Request, session: WebSession) -> Response:
        """Follow a turn: each event is a whole part of the page, and the last one reports the end."""
        turn = self._find_turn(request, session)
        keep_open(request, session.principal.key)
        return EventStream(self._write_events(turn, session))

    async def show_code(self, request: Request, session: WebSession) -> Response:
        """Show the code of an answer's mark."""
        turn = await self._find_readable(request, session)
        mark = request.path_params["mark"]
        if not (mark.isascii() and mark.isdecimal() and len(mark) < 6) or int(mark) not in turn.excerpts:
            raise HTTPException(404, "The answer has no such citation.")
        return await self._send_panel(request, session, turn, await self._show_excerpt(turn, int(mark)))

    async def show_course(self, request: Request, session: WebSession) -> Response:
        """Show how the answer of a turn was found."""
        turn = await self._find_readable(request, session)
        return await self._send_panel(request, session, turn, self._show_turn_course(turn))

    async def stop(self, request: Request, session: WebSession, _: Mapping[str, str]) -> Response:
        """Stop a turn; a finished one is no error."""
        turn = self._find_turn(request, session)
        await self._core.get().questions.stop(session.principal, turn.run_id)
        return self._conclude_form(request, turn)

    async def rate(self, request: Request, session: WebSession, fields: Mapping[str, str]) -> Response:
        """Store a person's opinion of an answer."""
        turn = self._find_turn(request, session)
        opinion = fields.get("opinion")
        if turn.answer is None or opinion not in {"good", "bad"}:
            raise HTTPException(400, "There is no answer to rate.")
        await self._core.get().records.rate(
            turn.run_id, session.principal.person, "good" if opinion == "good" else "bad"
        )
        turn.opinion = opinion
        if "HX-Request" not in request.headers:
            return self._conclude_form(request, turn)
        return send_html(self._files.call("turn.html", "show_rating", turn, session))

    async def share(self, request: Request, session: WebSession, _: Mapping[str, str]) -> Response:
        """Let others who may ask about the same repositories read an answer."""
        turn = self._find_turn(request, session)
        if turn.answer is None:
            raise HTTPException(400, "There is no answer to share.")
        await self._core.get().shared.share(turn, turn.answer)
        if "HX-Request" not in request.headers:
            return RedirectResponse(f"/shared/{turn.id}", 303)
        return send_html(self._files.call("turn.html", "show_share", turn, session))

    async def withdraw(self, request: Request, session: WebSession, _: Mapping[str, str]) -> Response:
        """Delete a shared answer, so that its link leads nowhere."""
        turn = await self._find_readable(request, session)
        if turn.owner != session.principal.key:
            raise HTTPException(403, "Only the person who shared this answer can stop sharing it.")
        await self._core.get().shared.withdraw(turn)
        if "HX-Request" not in request.headers:
            return RedirectResponse("/", 303)
        return send_html(self._files.call("turn.html", "show_share", turn, session, True))

    async def show_shared(self, request: Request, session: WebSession) -> Response:
        """Show a shared answer."""
        turn = await self._find_readable(request, session)
        return await self._show_page(session, _hold_alone(turn), panel=await self._show_behind(turn))

    async def _show_page(
        self,
        session: WebSession,
        conversation: LiveConversation | None,
        *,
        panel: Markup | None = None,
        written: str = "",
        problem: str = "",
    ) -> Response:
        core = self._core.get()
        for turn in conversation.turns if conversation is not None else ():
            await self._written.prepare(turn, turn.text)
            if turn.answer is not None:
                turn.state = await core.questions.find_state(session.principal, turn.answer.run_id)
        page = self._files.render(
            "ask.html", title=conversation.label if conversation else "Ask", here="Ask", session=session,
            conversation=conversation, repositories=core.list_visible(session.principal), starters=STARTERS,
            earlier=core.turns.list_conversations(session.principal)[:_MAX_EARLIER], written=written, problem=problem,
            panel=panel if panel is not None else await self._show_repositories(session),
        )  # fmt: skip
        return send_html(page, status=422 if problem else 200)

    async def _refuse(
        self, session: WebSession, conversation: LiveConversation | None, question: str, problem: str, *, is_part: bool
    ) -> Response:
        """Explain why a question is refused; its text stays in the form."""
        if is_part:
            return send_html(Markup.escape(problem), {"HX-Retarget": "#composer-problem", "HX-Reswap": "innerHTML"})
        return await self._show_page(session, conversation, written=question, problem=problem)

    def _begin_turn(self, turn: LiveTurn, session: WebSession) -> Markup:
        """Write the page's changes for a new question; the first one of a conversation names it, too."""
        panel = self._show_turn_course(turn)
        conversation = self._core.get().turns.find_conversation(session.principal, turn.conversation)
        label = conversation.label if conversation is not None and len(conversation.turns) == 1 else ""
        return self._files.call("turn.html", "begin_turn", turn, session, panel, label)

    async def _write_events(self, turn: LiveTurn, session: WebSession) -> AsyncGenerator[bytes, None]:
        shown = -1
        async for text in turn.follow():
            await self._written.prepare(turn, text)
            yield write_event(self._files.call("turn.html", "show_body", turn, text, session), name="turn")
            if turn.course_version != shown:
                shown = turn.course_version
                yield write_event(self._write_course(turn), name="course")
        yield write_event("done", name="done")

    async def _show_repositories(self, session: WebSession) -> Markup:
        repositories = await describe_repositories(self._core.get(), session.principal)
        return self._files.call("panel.html", "show_start", repositories)

    async def _show_behind(self, turn: LiveTurn) -> Markup:
        return await self._show_excerpt(turn, min(turn.excerpts)) if turn.excerpts else self._show_turn_course(turn)

    async def _show_excerpt(self, turn: LiveTurn, mark: int) -> Markup:
        excerpt = turn.excerpts[mark]
        numbered = await number_lines(self._core.get().turns.cited, self._highlighter, excerpt)
        return self._files.call("panel.html", "show_code", turn, mark, excerpt, numbered)

    def _show_turn_course(self, turn: LiveTurn) -> Markup:
        return self._files.call("panel.html", "show_course", turn, self._write_course(turn))

    def _write_course(self, turn: LiveTurn) -> Markup:
        """Write the sources while the turn runs, and afterwards how the answer was found."""
        drawing = self._drawing.draw(turn.course.visits) if turn.is_over else ""
        return self._files.call("panel.html", "show_course_body", turn, Markup(drawing))  # noqa: S704 - it escapes all text

    async def _send_panel(self, request: Request, session: WebSession, turn: LiveTurn, panel: Markup) -> Response:
        """Send a part to the page, or a whole page to a reader who opened its address."""
        if "HX-Request" in request.headers:
            return send_html(panel)
        conversation = self._core.get().turns.find_conversation(session.principal, turn.conversation)
        return await self._show_page(session, conversation or _hold_alone(turn), panel=panel)

    def _conclude_form(self, request: Request, turn: LiveTurn) -> Response:
        if "HX-Request" in request.headers:
            return Response(status_code=204)
        return RedirectResponse(f"/c/{turn.conversation}", 303)

    def _find_turn(self, request: Request, session: WebSession) -> LiveTurn:
        turn = self._core.get().turns.find_turn(session.principal, request.path_params["turn"])
        if turn is None:
            raise HTTPException(404, _GONE)
        return turn

    async def _find_readable(self, request: Request, session: WebSession) -> LiveTurn:
        """Find one of the person's turns, or a shared one whose repositories the person may ask about."""
        core, name = self._core.get(), request.path_params["turn"]
        turn = core.turns.find_turn(session.principal, name)
        if turn is not None:
            return turn
        turn = await core.shared.find(name)
        if turn is None or not turn.repositories or turn.repositories - set(core.list_visible(session.principal)):
            raise HTTPException(404, _GONE)
        return turn


def _hold_alone(turn: LiveTurn) -> LiveConversation:
    """Return a view of a single turn; a question there begins a conversation of the reader."""
    return LiveConversation(id="", owner=turn.owner, repository=None, turns=[turn])


class WrittenAnswers:
    """The texts of turns as HTML, written outside the event loop: hostile Markdown may take many seconds per page."""

    def __init__(self, markup: AnswerMarkup, highlighter: CodeHighlighter) -> None:
        self._markup = markup
        self._highlighter = highlighter
        self._is_free = asyncio.Semaphore(1)
        # By the turn, the text, and whether its marks are links.
        self._known: LRUCache[tuple[str, str, bool], Markup] = LRUCache(_MAX_WRITTEN, getsizeof=len)

    async def prepare(self, turn: LiveTurn, text: str) -> None:
        """Prepare a text of a turn, unless it is cached."""
        async with self._is_free:
            answer = turn.answer
            key = turn.id, text, answer is not None
            if text and key not in self._known:
                written = await self._write(turn.id, text, answer)
                if len(written) <= _MAX_WRITTEN:
                    self._known[key] = written

    def get(self, turn: LiveTurn, text: str) -> Markup:
        """Return a prepared text; only the words of one that is about to be shown again."""
        found = self._known.get((turn.id, text, True)) or self._known.get((turn.id, text, False))
        return found if found is not None else Markup.escape(text)

    async def _write(self, turn: str, text: str, answer: Answered | None) -> Markup:
        """Write a text as HTML; in a complete answer, marks lead to the code, and code is highlighted."""
        if answer is None:
            return await asyncio.to_thread(self._markup.write, text)
        marks = {
            cited.mark: MarkLink(href=f"/turns/{turn}/code/{cited.mark}", label=name_place(cited, answer))
            for cited in answer.citations
        }
        code = await self._highlighter.highlight_fences(self._markup, text)
        return await asyncio.to_thread(self._markup.write, text, marks, code)


def name_place(cited: CitedPlace, answer: Answered) -> str:
    """Name a cited place, with its repository if there are several."""
    if not cited.path:
        return f"commit {cited.commit[:12]}"
    label = f"{cited.repository}/" if len(answer.commits) > 1 else ""
    return format_location(f"{label}{cited.path}", cited.first_line, cited.last_line)
