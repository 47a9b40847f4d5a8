"""Uploads in three steps: ask for an address, send the bytes there, share the file."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web

from tests.fakes.loopback.wire import JSON
from tests.fakes.slack.arguments import Args
from tests.fakes.slack.chat import writable
from tests.fakes.slack.errors import SlackError
from tests.fakes.slack.messages import Message
from tests.fakes.slack.scopes import Access
from tests.fakes.slack.workspace import BOT_ID, BOT_USER, TEAM, Workspace


@dataclass(kw_only=True, slots=True)
class File:
    """A file on its way: `content` comes with the upload, `shared` with the last step."""

    id: str
    name: str
    length: int
    title: str = ""
    content: bytes | None = None
    shared: bool = False
    alt: str = ""


class Files:
    """files.getUploadURLExternal, the upload, files.completeUploadExternal."""

    def __init__(self, workspace: Workspace, access: Access) -> None:
        self._access = access
        self.base_url = ""
        self.stored: dict[str, File] = {}
        self._workspace = workspace

    def host(self, name: str, content: bytes, media_type: str) -> JSON:
        """Keep a file that a person shares; return what events tell of it."""
        file = File(id=f"F{self._workspace.number():04d}", name=name, length=len(content), content=content, shared=True)
        self.stored[file.id] = file
        url = f"{self.base_url}/files-pri/T-{file.id}/{name}"
        described = {"id": file.id, "name": name, "title": name, "size": file.length, "mode": "hosted"}
        return described | {"mimetype": media_type, "url_private": url, "url_private_download": url}

    async def send(self, request: web.Request) -> web.Response:
        """Send a file to anyone who has the right to read files; to others, the page where people log in."""
        file = self.stored.get(request.match_info["file"].removeprefix("T-"))
        if file is None or file.content is None:
            return web.Response(status=404, text="not found")
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token != self._access.bot_token or "files:read" not in self._access.scopes:
            return web.Response(text="<html>Sign in</html>", content_type="text/html")
        return web.Response(body=file.content, content_type="application/octet-stream")

    def upload_url(self, args: Args) -> JSON:
        """Name the address to which the bytes go."""
        name = args.required("filename")
        length = args.number("length", default=0, most=1_000_000_000, refusal="invalid_arguments")
        alt = args.text("alt_txt")
        if len(alt) > 1_000:
            raise SlackError("alt_txt_too_large")
        file = File(id=f"F{self._workspace.number():04d}", name=name, length=length, alt=alt)
        self.stored[file.id] = file
        return {"upload_url": f"{self.base_url}/upload/v1/{file.id}", "file_id": file.id}

    async def receive(self, request: web.Request) -> web.Response:
        """Take the bytes."""
        file = self.stored.get(request.match_info["file"])
        if file is None:
            return web.Response(status=404, text="not found")
        file.content = await _bytes(request)
        if len(file.content) != file.length:
            return web.Response(status=400, text="length differs from what was announced")
        return web.Response(text=f"OK - {file.length}")

    def complete(self, args: Args) -> JSON:
        """Share uploaded files in a channel or thread, or keep them unshared."""
        wanted = args.items("files", refusal="invalid_arguments") or []
        if not wanted:
            raise SlackError("invalid_arguments")
        files = [self._uploaded(each) for each in wanted]
        described = [{"id": each.id, "name": each.name, "title": each.title, "size": each.length} for each in files]
        if args.text("channel_id"):
            self._share(described, args)
        for each in files:
            each.shared = bool(args.text("channel_id"))
        return {"files": described}

    def _uploaded(self, wanted: JSON) -> File:
        file = self.stored.get(str(wanted.get("id")))
        if file is None or file.content is None:
            raise SlackError("file_not_found")
        file.title = str(wanted.get("title") or file.name)
        return file

    def _share(self, described: list[JSON], args: Args) -> None:
        message = Message(
            ts=self._workspace.next_ts(),
            channel=writable(self._workspace, args.text("channel_id")).id,
            user=BOT_USER,
            team=TEAM,
            bot_id=BOT_ID,
            subtype="file_share",
            text=args.text("initial_comment"),
            thread_ts=args.optional("thread_ts"),
            files=described,
        )
        self._workspace.post(message)


async def _bytes(request: web.Request) -> bytes:
    if request.content_type != "multipart/form-data":
        return await request.read()
    for value in (await request.post()).values():
        if isinstance(value, web.FileField):
            return value.file.read()
    return b""
