"""A host that serves git repositories over HTTP on loopback, as `git http-backend` does, and refuses when told to."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from indexer.subprocesses import finish_start, kill_session
from tests.fakes.loopback.closing import close_server
from tests.fakes.repositories import run_git
from tests.waiting import wait_for


@dataclass
class Seen:
    """One request: what for, and with which credentials."""

    path: str
    authorization: str | None


@dataclass
class GitHost:
    """Serves the bare repositories of a folder; what it does to requests may be changed at any time.

    `password` makes every request sign in, whatever the user's name. `moved` maps beginnings of paths to addresses
    that are redirected to, `status` answers every request, and `silent` lets them hang until it is set, or those from
    number `patience` on.
    """

    root: Path
    url: str = ""
    password: str | None = None
    status: int | None = None
    moved: dict[str, str] = field(default_factory=dict)
    silent: asyncio.Event | None = None
    patience: int = 1
    seen: list[Seen] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)  # set by the first request that hangs
    looks_around: bool = True  # which takes time
    processes: list[str] = field(default_factory=list)  # command lines of all processes at the time of each request

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(Seen(request.path, request.headers.get("Authorization")))
        if self.looks_around:
            self.processes.append(await asyncio.to_thread(command_lines))
        if self.silent is not None and len(self.seen) >= self.patience:
            self.asked.set()
            await wait_for(self.silent.wait(), "self.silent")
        for beginning, target in self.moved.items():
            if request.path.startswith(beginning):
                location = target + request.path_qs.removeprefix(beginning)
                return web.Response(status=301, headers={"Location": location})
        if self.status is not None:
            return web.Response(status=self.status, text="<html>\nPlease sign in\n</html>\n")
        if self.password is not None and not self._signed_in(request):
            return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="git"'})
        return await self._serve(request)

    def _signed_in(self, request: web.Request) -> bool:
        kind, _, value = request.headers.get("Authorization", "").partition(" ")
        return kind == "Basic" and base64.b64decode(value).decode().partition(":")[2] == self.password

    async def _serve(self, request: web.Request) -> web.Response:
        process = await finish_start(asyncio.create_subprocess_exec(
            "git", "http-backend", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            env=self._variables(request), start_new_session=True,
        ))  # fmt: skip
        try:
            output, _ = await wait_for(process.communicate(await request.read()), "the answer of git http-backend")
        finally:  # also where the host ends before the answer does
            await asyncio.shield(kill_session(process))
        head, _, body = output.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
        status = int(headers.pop("Status", "200 OK").split()[0])
        return web.Response(status=status, headers=headers, body=body)

    def _variables(self, request: web.Request) -> dict[str, str]:
        # aiohttp has unpacked the body already
        return {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
            "PATH_INFO": request.path,
            "QUERY_STRING": request.query_string,
            "REQUEST_METHOD": request.method,
            "CONTENT_TYPE": request.headers.get("Content-Type", ""),
            "REMOTE_USER": "somebody",
            "REMOTE_ADDR": "127.0.0.1",
        }


@asynccontextmanager
async def serving(host: GitHost, address: str = "127.0.0.1") -> AsyncIterator[GitHost]:
    """Serve on a free port of loopback."""
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", host.answer)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, address, 0)
        await site.start()
        host.url = f"http://{address}:{runner.addresses[0][1]}"
        yield host
    finally:
        if host.silent is not None:
            host.silent.set()
        await close_server(runner)


def command_lines() -> str:
    """What `ps` would show of everybody; nothing if the system does not tell."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(lines)


def published(root: Path, host: GitHost, name: str) -> Path:
    """Copy a repository to a host, bare; pushing to the returned path changes what the host serves."""
    target = host.root / name
    shutil.rmtree(target, ignore_errors=True)
    host.root.mkdir(parents=True, exist_ok=True)
    run_git(host.root, "clone", "--quiet", "--bare", str(root), str(target))
    run_git(target, "config", "receive.denyDeleteCurrent", "ignore")
    return target
