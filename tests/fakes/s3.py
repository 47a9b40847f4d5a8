"""A server that speaks the part of S3's protocol that publishing needs, over loopback, with the errors that S3 has."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from xml.sax.saxutils import escape, unescape

from aiohttp import web

from tests.fakes.loopback.closing import close_server

BUCKET = "citebot"
_XML = '<?xml version="1.0" encoding="UTF-8"?>'
_REASONS = {
    403: "AccessDenied",
    404: "NoSuchKey",
    412: "PreconditionFailed",
    503: "SlowDown",
    507: "InsufficientStorage",
}


@dataclass
class FakeS3:
    """One bucket. `refuse` is how the next requests are answered, `skew` how far the server's clock is off."""

    port: int = 0
    objects: dict[str, tuple[bytes, datetime]] = field(default_factory=dict)
    refuse: list[int] = field(default_factory=list)
    always: int = 0
    skew: timedelta = timedelta(0)
    page: int = 1000
    requests: list[tuple[str, str]] = field(default_factory=list)

    @property
    def options(self) -> dict[str, Any]:
        """What obstore has to know to ask this server."""
        return {
            "config": {
                "endpoint": f"http://127.0.0.1:{self.port}",
                "access_key_id": "key",
                "secret_access_key": "secret",
                "region": "us-east-1",
                "virtual_hosted_style_request": False,
            },
            "client_options": {"allow_http": True, "timeout": timedelta(seconds=5)},
            "retry_config": {
                "max_retries": 2,
                "retry_timeout": timedelta(seconds=5),
                "backoff": {
                    "init_backoff": timedelta(milliseconds=1),
                    "max_backoff": timedelta(milliseconds=2),
                    "base": 2,
                },
            },
        }

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        key = request.match_info["key"].removeprefix("/")
        self.requests.append((request.method, key))
        if request.match_info["bucket"] != BUCKET:
            return _fail(404, "NoSuchBucket")
        if self.always or self.refuse:
            return _fail(self.always or self.refuse.pop(0))
        if request.method == "PUT":
            return await self._put(request, key)
        if request.method == "DELETE":
            self.objects.pop(key, None)
            return web.Response(status=204)
        if request.method == "POST":
            return await self._delete_several(request)
        return self._list(request) if not key else self._get(request, key)

    async def _delete_several(self, request: web.Request) -> web.Response:
        keys = re.findall(r"<Key>(.*?)</Key>", await request.text())
        for key in keys:
            self.objects.pop(unescape(key), None)
        text = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
        return web.Response(text=f"{_XML}<DeleteResult>{text}</DeleteResult>", content_type="application/xml")

    async def _put(self, request: web.Request, key: str) -> web.Response:
        data = await request.read()
        if request.headers.get("If-None-Match") == "*" and key in self.objects:
            return _fail(412)
        self.objects[key] = data, datetime.now(UTC) + self.skew
        return web.Response(headers={"ETag": _tag(data)})

    def _get(self, request: web.Request, key: str) -> web.Response:
        if key not in self.objects:
            return _fail(404)
        data, at = self.objects[key]
        headers = {"ETag": _tag(data), "Last-Modified": format_datetime(at, usegmt=True), "Accept-Ranges": "bytes"}
        if "Range" not in request.headers:
            return web.Response(body=data, headers=headers)
        wanted = request.http_range
        start, end = wanted.start or 0, min(wanted.stop or len(data), len(data))
        if start >= len(data):
            return web.Response(status=416, headers={"Content-Range": f"bytes */{len(data)}"})
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(data)}"
        return web.Response(status=206, body=data[start:end], headers=headers)

    def _list(self, request: web.Request) -> web.Response:
        prefix, after = request.query.get("prefix", ""), request.query.get("continuation-token", "")
        keys = sorted(key for key in self.objects if key.startswith(prefix) and key > after)
        page, more = keys[: self.page], len(keys) > self.page
        entries = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>{at.isoformat()}</LastModified>"
            f"<ETag>{escape(_tag(data))}</ETag><Size>{len(data)}</Size></Contents>"
            for key in page
            for data, at in [self.objects[key]]
        )
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        text = (
            f"{_XML}<ListBucketResult><Name>{BUCKET}</Name>"
            f"<KeyCount>{len(page)}</KeyCount><IsTruncated>{str(more).lower()}</IsTruncated>{token}{entries}</ListBucketResult>"
        )
        return web.Response(text=text, content_type="application/xml")


@asynccontextmanager
async def serve_s3() -> AsyncIterator[FakeS3]:
    """Serve an empty bucket."""
    fake = FakeS3()
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{bucket}{key:(?:/.*)?}", fake.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    fake.port = runner.addresses[0][1]
    try:
        yield fake
    finally:
        await close_server(runner)


def _tag(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'


def _fail(status: int, code: str = "") -> web.Response:
    code = code or _REASONS[status]
    text = f"{_XML}<Error><Code>{code}</Code><Message>{code}</Message></Error>"
    return web.Response(status=status, text=text, content_type="application/xml")
