"""Reads the attachments of a question, and the thread around it, within limits."""

from __future__ import annotations

import asyncio
import codecs
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from agent import BACKGROUND_HEADING, MAX_QUESTION, AttachedImage, AttachedText, Attachments, quote_line
from bot.errors import ChatError
from bot.markdown.formatting import to_one_line
from bot.messages import LONGEST_QUOTED, AttachedFile, IncomingMessage, ThreadMessage
from bot.ports import ChatPlatform

MAX_TEXT = 200_000  # characters of a file; of a longer one its beginning and its end
MAX_BYTES = 5_000_000  # of a file
MAX_IMAGES = 4
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
_NEVER_TEXT = ("image/", "audio/", "video/", "font/")
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_MAX_NAME = 80
_SAMPLE = 8_000  # bytes that tell whether a file is text
_MAX_STRANGE = 0.02  # of the characters of a text
log = logging.getLogger(__name__)
MAX_MESSAGES = 40
LONGEST_QUESTION = MAX_QUESTION - 100  # characters, the thread around it included
MAX_CHARACTERS = 1_600  # characters of a thread; the question comes first
LONGEST_MESSAGE = 400


@dataclass(kw_only=True)
class ReadAttachments:
    """The attachments of a message that were read, and a sentence for each one that was not."""

    texts: list[AttachedText] = field(default_factory=list)
    images: list[AttachedImage] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def to_attachments(self) -> Attachments:
        """Return the attachments for the agent."""
        return Attachments(texts=tuple(self.texts), images=tuple(self.images))


class UnreadableFile(Exception):
    """A file that is not read; the text is the end of a sentence that begins with its name."""


async def read_attachments(
    message: IncomingMessage, platform: ChatPlatform, *, takes_images: bool, mask: Callable[[str], str]
) -> ReadAttachments:
    """Fetch the files of a message, and add forwarded ones; images only for a model that accepts them."""
    read = ReadAttachments(texts=[AttachedText(name="a quoted message", text=text) for text in message.quoted])
    for file in message.files:
        name = to_one_line(mask(file.name)).replace("`", "")[:_MAX_NAME] or "a file"
        try:
            if file.media_type in IMAGE_TYPES:
                read.images.append(await _read_image(name, file, platform, room=MAX_IMAGES * takes_images, read=read))
            else:
                read.texts.append(AttachedText(name=name, text=await _read_text(file, platform)))
        except UnreadableFile as reason:
            read.remarks.append(f"`{name}` {reason}")
    return read


async def _read_image(
    name: str, file: AttachedFile, platform: ChatPlatform, *, room: int, read: ReadAttachments
) -> AttachedImage:
    """Fetch an image if there is room for one more."""
    if not room:
        raise UnreadableFile("is an image that I couldn't see: no model here reads images.")
    if len(read.images) >= room:
        raise UnreadableFile(f"was skipped: I looked only at the first {room} images.")
    return AttachedImage(name=name, media_type=file.media_type, data=await _fetch(platform, file))


async def _read_text(file: AttachedFile, platform: ChatPlatform) -> str:
    """Fetch a text; what its type tells to be none is not fetched."""
    if file.media_type.startswith(_NEVER_TEXT):
        raise UnreadableFile("is not text, so I did not read it.")
    return await asyncio.to_thread(decode_text, await _fetch(platform, file))


async def _fetch(platform: ChatPlatform, file: AttachedFile) -> bytes:
    try:
        return await platform.read_file(file, most=MAX_BYTES)
    except ChatError as error:
        log.warning("a file was not read: %s", error)
        raise UnreadableFile(f"could not be read. {error}") from error


def decode_text(data: bytes) -> str:
    """Read bytes as text, in UTF-8 or as a mark at their beginning says; both ends of a long one.

    Raises `UnreadableFile` for anything but text.
    """
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    if encoding != "utf-16" and b"\0" in data[:_SAMPLE]:
        raise UnreadableFile("is not text, so I did not read it.")
    text = data.decode(encoding, "replace")
    if text[:_SAMPLE].count("\ufffd") > _MAX_STRANGE * min(len(text), _SAMPLE):
        raise UnreadableFile("isn't text that I can read. Save it as UTF-8.")
    if len(text) <= MAX_TEXT:
        return text
    left_out = len(text) - MAX_TEXT
    return f"{text[: MAX_TEXT // 2]}\n[… {left_out} characters left out …]\n{text[-MAX_TEXT // 2 :]}"


async def read_thread_quotes(
    message: IncomingMessage, platform: ChatPlatform, mask: Callable[[str], str]
) -> Sequence[str]:
    """Quote the thread that citebot was called into, a message a line; a thread that cannot be read is left out."""
    if message.kind != "mention" or not message.in_thread:
        return ()
    try:
        thread = await platform.read_thread(message.place, before=message.id, limit=MAX_MESSAGES)
    except ChatError as error:
        log.warning("a thread was not read: %s", error)
        return ()
    room = LONGEST_QUESTION - len(message.text)
    return await asyncio.to_thread(quote_thread, thread, room=room, mask=mask)


def quote_thread(
    thread: Sequence[ThreadMessage],
    *,
    room: int,
    mask: Callable[[str], str] = str,
    names: Mapping[str, str] = MappingProxyType({}),
) -> Sequence[str]:
    """Quote the newest messages of people, oldest first, within the room in characters.

    People are numbered, except those of `names`: neither a model nor an answer learns who they are. Orders are flagged
    and stay: writing one can neither have citebot refuse others, nor hide that they wrote it.
    """
    people = [message for message in thread if not message.own]
    authors = dict.fromkeys(each.author for each in people)
    called = {author: names.get(author, f"person {number}") for number, author in enumerate(authors, 1)}
    left = min(MAX_CHARACTERS, room - len(BACKGROUND_HEADING) - 4)
    lines: list[str] = []
    for message in reversed(people):
        text = to_one_line(mask(message.text)[:LONGEST_QUOTED])
        if not text:
            continue
        shown = text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 1]}…"
        line = quote_line(called[message.author], shown)
        left -= len(line) + 1
        if left < 0:
            break
        lines.append(line)
    return lines[::-1]
