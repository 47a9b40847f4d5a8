"""The pages of the workspace: its channels, threads and code, and the forms to write in it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, Router, request_response

from bot.access import AccessPolicy
from bot.adapters.local.listener import COMMANDS, GONE, REACTIONS, LocalListener, parse_message
from bot.adapters.local.rendering import MessageRendering
from bot.adapters.local.workspace import BOT, DIRECT, PLATFORM, Channel, Person, StoredMessage, Workspace, read_number
from bot.http.connections import keep_open
from bot.http.event_streams import EventStream, write_event
from bot.messages import MAX_FILES
from bot.surfaces.ask_events import CitedPlace
from bot.surfaces.principals import Principal
from bot.surfaces.team_surfaces import Late
from bot.surfaces.web.cited_code import CitedCode, CodeHighlighter, number_lines
from bot.surfaces.web.page_files import PageFiles
from bot.surfaces.web.request_guard import LOGIN, LoginLink, RequestGuard, WebAddress, WebSession, WebSessions
from bot.surfaces.web.web_core import send_html

STATIC = {"workspace.css": "text/css", "workspace.js": "text/javascript"}
STARTERS = ("@citebot how do I run the tests?", "@citebot what changed recently?", "/citebot status")
PICTURES = frozenset({"png", "jpg", "jpeg", "gif", "webp"})
USED_LINK = "This link is wrong or was already used."
NO_SUCH_PAGE = "There is no page at this address."
EMPTY = "Write something first."

Push = Callable[[Person, CitedPlace | None], Awaitable[str]]


@dataclass(frozen=True, kw_only=True)
class LocalCore:
    """The pages' access to a running citebot. `push` commits to the copy and returns a description of the commit."""

    workspace: Workspace
    listener: LocalListener
    code: CitedCode
    access: AccessPolicy
    push: Push
    repository: str


@dataclass(frozen=True, kw_only=True)
class View:
    """The channel, and the thread in it, that one person looks at."""

    person: Person
    session: WebSession
    channel: Channel
    thread: int = 0

    @property
    def address(self) -> str:
        """Its address."""
        return f"/c/{self.channel.id}" + (f"/{self.thread}" if self.thread else "")


class LocalPages:
    """The pages; anyone who opens the printed link may switch between all people."""

    def __init__(self, link: LoginLink, sessions: WebSessions, highlighter: CodeHighlighter) -> None:
        self._link = link
        self._sessions = sessions
        self._highlighter = highlighter
        self._core = Late[LocalCore]()
        self._files = PageFiles("bot.adapters.local", STATIC)
        self._guard = RequestGuard(WebAddress(), sessions, self._refuse)  # this machine alone, by its own names
        self._rendering: MessageRendering | None = None
        self._files.define("pages", ())
        self._files.define("signs", REACTIONS)

    def open(self, core: LocalCore) -> None:
        """Serve the workspace from now on."""
        self._rendering = MessageRendering(core.workspace, self._highlighter)
        self._core.open(core)

    def join(self, router: Router) -> None:
        """Add the paths to the server's."""
        self._files.join(router)
        guard, see, do = self._guard, self._guard.require_session, self._guard.require_form
        router.routes += [
            Route("/", see(self.show_start)),
            Route(LOGIN, guard.open(self.log_in)),
            Route("/c/{channel}", see(self.show_channel)),
            Route("/c/{channel}/{thread}", see(self.show_channel)),
            Route("/c/{channel}/{thread}/events", see(self.send_events)),
            Route("/messages/{message}/code/{number}", see(self.show_code)),
            Route("/messages/{message}/file", see(self.send_attachment)),
            Route("/files/{file}", see(self.send_file)),
            Route("/person", do(self.switch_person), methods=["POST"]),
            Route("/messages", do(self.write), methods=["POST"]),
            Route("/messages/{message}/edit", do(self.edit), methods=["POST"]),
            Route("/messages/{message}/delete", do(self.delete), methods=["POST"]),
            Route("/messages/{message}/press", do(self.press), methods=["POST"]),
            Route("/messages/{message}/react", do(self.react), methods=["POST"]),
            Route("/push", do(self.push), methods=["POST"]),
        ]
        router.default = request_response(guard.open(self.show_missing))

    async def log_in(self, request: Request) -> Response:
        """Let the printed link sign in once, and print another one."""
        given = request.query_params.get("t")
        if given is None or not self._link.take(given):
            if self._guard.find_session(request) is not None:  # who opens it again is signed in
                return RedirectResponse("/", 303)
            page = self._files.render(
                "login.html", title="Sign in", here="", session=None, problem=USED_LINK if given else "",
                takes_tokens=False, command="citebot demo", target="/",
            )  # fmt: skip
            return send_html(page, status=403 if given else 200)
        self._link.announce()
        return self._sign_in(request, next(iter(self._core.get().workspace.people.values())), "/")

    async def switch_person(self, request: Request, _: WebSession, fields: Mapping[str, str]) -> Response:
        """Become another person, and stay in the same channel if they see it."""
        workspace = self._core.get().workspace
        person = workspace.people.get(fields.get("person", ""))
        if person is None:
            raise HTTPException(400, "There is no such person.")
        channel = fields.get("channel", "")
        channel = f"{DIRECT}{person.id}" if channel.startswith(DIRECT) else channel
        is_seen = workspace.find_channel(person.id, channel) is not None
        self._guard.sign_out(request, Response())
        return self._sign_in(request, person, f"/c/{channel}" if is_seen else "/")

    async def show_start(self, _: Request, session: WebSession) -> Response:
        """Redirect to the first channel."""
        channels = self._core.get().workspace.list_channels(session.principal.person)
        return RedirectResponse(f"/c/{channels[0].id}", 303)

    async def show_channel(self, request: Request, session: WebSession) -> Response:
        """Show a channel with one of its threads, or only the thread if the channel is already open."""
        view = self._read_view(request, session)
        thread = await self._render_thread(view) if view.thread else Markup()
        if view.thread and "HX-Request" in request.headers:
            return send_html(thread)
        return send_html(await self._render_page(view, thread=thread))

    async def send_events(self, request: Request, session: WebSession) -> Response:
        """Stream new and changed messages, each as a whole."""
        view = self._read_view(request, session)
        after = request.headers.get("Last-Event-ID") or request.query_params.get("after", "")
        keep_open(request, session.csrf)
        return EventStream(self._write_events(view, read_number(after)))

    async def show_code(self, request: Request, session: WebSession) -> Response:
        """Show the lines behind a message's link."""
        message = await self._find_message(request, session)
        places = await self._get_rendering().list_places(message)
        number = read_number(request.path_params["number"])
        if not 0 < number <= len(places):
            raise HTTPException(404, "The message has no such link.")
        place, core = places[number - 1], self._core.get()
        person = self._find_person(session)
        asked = parse_message(message, person, core.workspace.people)
        if not core.access.list_visible(asked, [place.repository]):
            raise HTTPException(403, "You don't have access to this code.")
        excerpt = await core.code.read(place)
        lines = await number_lines(core.code, self._highlighter, excerpt)
        view = View(
            person=person, session=session, channel=self._find_channel(message.channel, person), thread=message.thread
        )
        panel = self._files.call("messages.html", "show_panel", view, excerpt, lines)
        if "HX-Request" in request.headers:
            return send_html(panel)
        thread = await self._render_thread(view) if view.thread else Markup()
        return send_html(await self._render_page(view, thread=thread, panel=panel))

    async def send_file(self, request: Request, session: WebSession) -> Response:
        """Send a file attached to a message that the person can see."""
        workspace, number = self._core.get().workspace, read_number(request.path_params["file"])
        found = await workspace.read_file(number)
        message = await workspace.find(found[0], session.principal.person) if found is not None else None
        file = next((each for each in message.files if each.id == number), None) if message is not None else None
        if found is None or file is None:
            raise HTTPException(404, GONE)
        return _send_download(file.name, found[1])

    async def send_attachment(self, request: Request, session: WebSession) -> Response:
        """Send the file attached to a citebot message."""
        message = await self._find_message(request, session)
        file = message.content.file if message.content is not None else None
        if file is None:
            raise HTTPException(404, GONE)
        return _send_download(file.name, file.content)

    async def write(self, request: Request, session: WebSession, fields: Mapping[str, str]) -> Response:
        """Post a message."""
        person = self._find_person(session)
        channel = self._find_channel(fields.get("channel", ""), person)
        thread = read_number(fields.get("thread", ""))
        text, files = fields.get("text", "").strip(), _read_files(fields)
        if not text and not files:
            return self._conclude(request, channel, thread, EMPTY)
        root = await self._core.get().workspace.find(thread, person.id) if thread else None
        if thread and (root is None or root.channel != channel.id or root.thread):
            raise HTTPException(404, GONE)
        told = await self._core.get().listener.write(person, channel.id, text, thread=thread, files=files)
        return self._conclude(request, channel, thread, told)

    async def edit(self, request: Request, session: WebSession, fields: Mapping[str, str]) -> Response:
        """Edit one's own message."""
        message, text = await self._find_message(request, session), fields.get("text", "").strip()
        listener, person = self._core.get().listener, self._find_person(session)
        told = await listener.edit(person, message, text) if text else EMPTY
        return self._conclude(request, self._find_channel(message.channel, person), message.thread, told)

    async def delete(self, request: Request, session: WebSession, _: Mapping[str, str]) -> Response:
        """Delete one's own message."""
        message, person = await self._find_message(request, session), self._find_person(session)
        told = await self._core.get().listener.delete(person, message)
        return self._conclude(request, self._find_channel(message.channel, person), message.thread, told)

    async def press(self, request: Request, session: WebSession, fields: Mapping[str, str]) -> Response:
        """Press a button of a citebot message."""
        message, person = await self._find_message(request, session), self._find_person(session)
        number = fields.get("button", "")
        told = await self._core.get().listener.press(person, message, read_number(number) if number else -1)
        return self._conclude(request, self._find_channel(message.channel, person), message.thread, told)

    async def react(self, request: Request, session: WebSession, fields: Mapping[str, str]) -> Response:
        """React to a message, or remove the reaction."""
        message, person = await self._find_message(request, session), self._find_person(session)
        told = await self._core.get().listener.react(person, message, fields.get("sign", ""))
        return self._conclude(request, self._find_channel(message.channel, person), message.thread, told)

    async def push(self, request: Request, session: WebSession, fields: Mapping[str, str]) -> Response:
        """Push a commit to the copy that changes the first cited lines of the channel's newest answer."""
        core, person = self._core.get(), self._find_person(session)
        channel = self._find_channel(fields.get("channel", ""), person)
        told = await core.push(person, await self._find_newest_place(channel, person))
        return self._conclude(request, channel, 0, told)

    async def show_missing(self, _: Request) -> Response:
        """Refuse an unknown address."""
        raise HTTPException(404, NO_SUCH_PAGE)

    async def _find_newest_place(self, channel: Channel, person: Person) -> CitedPlace | None:
        changes = await self._core.get().workspace.list_newest(channel.id, BOT, person.id)
        for message in changes:
            for place in await self._get_rendering().list_places(message):
                if place.path:
                    return place
        return None

    async def _write_events(self, view: View, seen: int) -> AsyncGenerator[bytes, None]:
        workspace = self._core.get().workspace
        while True:
            changed = workspace.watch()
            for message in await workspace.list_changes(seen, view.person.id):
                seen = message.version
                shown = await self._get_rendering().show(message)
                markup = self._files.call("messages.html", "show_message", shown, view)
                yield write_event(markup, name="message", id=str(seen))
            await changed.wait()

    async def _render_page(self, view: View, *, thread: Markup, panel: Markup = Markup("")) -> Markup:  # noqa: B008
        core = self._core.get()
        seen = await core.workspace.read_version()
        messages = await core.workspace.list_messages(view.channel.id, 0, view.person.id)
        return self._files.render(
            "workspace.html", title=f"{view.channel.name}", here="", session=view.session, view=view,
            channels=core.workspace.list_channels(view.person.id), people=core.workspace.people.values(),
            messages=[await self._get_rendering().show(each) for each in messages], thread=thread, panel=panel,
            seen=seen, starters=STARTERS, names=[BOT, *(each.name for each in core.workspace.people.values())],
            commands=COMMANDS, repository=core.repository,
        )  # fmt: skip

    async def _render_thread(self, view: View) -> Markup:
        workspace = self._core.get().workspace
        root = await workspace.find(view.thread, view.person.id)
        if root is None or root.channel != view.channel.id or root.thread:
            raise HTTPException(404, GONE)
        below = await workspace.list_messages(view.channel.id, view.thread, view.person.id)
        shown = [await self._get_rendering().show(each) for each in (root, *below)]
        return self._files.call("messages.html", "show_thread", shown, view)

    async def _find_message(self, request: Request, session: WebSession) -> StoredMessage:
        number = read_number(request.path_params["message"])
        message = await self._core.get().workspace.find(number, session.principal.person)
        if message is None or message.is_deleted:
            raise HTTPException(404, GONE)
        return message

    def _read_view(self, request: Request, session: WebSession) -> View:
        person = self._find_person(session)
        channel = self._find_channel(request.path_params["channel"], person)
        thread = read_number(request.path_params.get("thread", ""))
        return View(person=person, session=session, channel=channel, thread=thread)

    def _find_channel(self, name: str, person: Person) -> Channel:
        channel = self._core.get().workspace.find_channel(person.id, name)
        if channel is None:
            raise HTTPException(404, "There is no such channel.")
        return channel

    def _find_person(self, session: WebSession) -> Person:
        return self._core.get().workspace.people[session.principal.person]

    def _get_rendering(self) -> MessageRendering:
        if self._rendering is None:
            raise HTTPException(503, "citebot is starting. Try again.")
        return self._rendering

    def _conclude(self, request: Request, channel: Channel, thread: int, told: str) -> Response:
        """Answer a form: the reply goes into the page, which gets everything else by its stream."""
        if "HX-Request" in request.headers:
            return send_html(Markup.escape(told))
        return RedirectResponse(f"/c/{channel.id}" + (f"/{thread}" if thread else ""), 303)

    def _sign_in(self, request: Request, person: Person, target: str) -> Response:
        principal = Principal(name=person.name, platform=PLATFORM, person=person.id)
        response = RedirectResponse(target, 303)
        self._guard.sign_in(request, response, self._sessions.open(principal))
        return response

    def _refuse(self, _: Request, status: int, text: str) -> Response:
        page = self._files.render(
            "message.html", title="Not found" if status == 404 else "Something went wrong", here="", text=text,
            session=None, has_link=status != 421,
        )  # fmt: skip
        return send_html(page, status=status)


def _read_files(fields: Mapping[str, str]) -> Sequence[tuple[str, str, bytes]]:
    """Read the files in a form, each with its name and base64 content."""
    found = []
    for number in range(MAX_FILES):
        name = fields.get(f"name{number}", "")
        if not name:
            break
        try:
            content = base64.b64decode(fields.get(f"data{number}", ""), validate=True)
        except (binascii.Error, ValueError):
            raise HTTPException(400, "The file could not be read. Attach it again.") from None
        found.append((name[:200], fields.get(f"type{number}", "")[:200].lower(), content))
    return found


def _send_download(name: str, content: bytes) -> Response:
    """Send a file to save, or a picture to show; browsers execute neither."""
    suffix = name.rpartition(".")[2].lower()
    if suffix in PICTURES:
        return Response(content, media_type=f"image/{'jpeg' if suffix == 'jpg' else suffix}")
    return Response(content, media_type="text/plain", headers={"Content-Disposition": "attachment"})
