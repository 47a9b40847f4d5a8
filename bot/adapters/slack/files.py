"""Sends a text file into a thread, in the three steps that Slack has for it."""

from __future__ import annotations

import aiohttp

from bot.adapters.slack.client import SlackClient
from bot.errors import PlatformUnreachable
from bot.messages import Attachment, MessageHandle


async def upload_file(calls: SlackClient, handle: MessageHandle, file: Attachment) -> None:
    """Upload a file and show it in the thread of a message."""
    data = file.text.encode("utf-8", "replace")
    where = await calls.send(lambda: calls.client.files_getUploadURLExternal(filename=file.name, length=len(data)))
    await _upload(calls, str(where["upload_url"]), data)
    await calls.send(
        lambda: calls.client.files_completeUploadExternal(
            files=[{"id": where["file_id"], "title": file.name}],
            channel_id=handle.channel,
            thread_ts=handle.thread or handle.id,
        )
    )


async def _upload(calls: SlackClient, url: str, data: bytes) -> None:
    session = calls.client.session
    if session is None:
        raise PlatformUnreachable("There is no session to upload with.")
    try:
        async with session.post(url, data=data, proxy=calls.client.proxy) as answer:
            if answer.status != 200:
                raise PlatformUnreachable(f"Slack answered an upload with the status {answer.status}.")
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise PlatformUnreachable(f"Slack does not answer ({type(error).__name__}).") from error
