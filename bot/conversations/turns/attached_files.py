"""Fetches a question's attachments within limits and decodes them; each one that cannot be read is named."""

from __future__ import annotations

import asyncio
import codecs
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from agent import AttachedImage, AttachedText, Attachments
from bot.errors import ChatError
from bot.markdown.formatting import to_one_line
from bot.messages import AttachedFile, IncomingMessage
from bot.ports import ChatPlatform

MOST_TEXT = 200_000  # characters of a file; of a longer one its beginning and its end
MOST_BYTES = 5_000_000  # of a file
MOST_IMAGES = 4
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
_NEVER_TEXT = ("image/", "audio/", "video/", "font/")
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_LONGEST_NAME = 80
_SAMPLE = 8_000  # bytes that tell whether a file is text
_MAX_STRANGE = 0.02  # of the characters of a text

log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class ReadAttachments:
    """The attachments of a message that were read, and a sentence for each one that was not."""

    texts: list[AttachedText] = field(default_factory=list)
    images: list[AttachedImage] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def to_attachments(self) -> Attachments:
        """Return what the agent is given."""
        return Attachments(texts=tuple(self.texts), images=tuple(self.images))


class UnreadableFile(Exception):
    """A file that is not read; the text is the end of a sentence that begins with its name."""


async def read_attachments(
    message: IncomingMessage, platform: ChatPlatform, *, takes_images: bool, mask: Callable[[str], str]
) -> ReadAttachments:
    """Fetch the files of a message, and add what was forwarded with it; images only for a model that takes them."""
    read = ReadAttachments(texts=[AttachedText(name="a quoted message", text=text) for text in message.quoted])
    for file in message.files:
        name = to_one_line(mask(file.name)).replace("`", "")[:_LONGEST_NAME] or "a file"
        try:
            if file.media_type in IMAGE_TYPES:
                read.images.append(await _read_image(name, file, platform, room=MOST_IMAGES * takes_images, read=read))
            else:
                read.texts.append(AttachedText(name=name, text=await _read_text(file, platform)))
        except UnreadableFile as reason:
            read.remarks.append(f"`{name}` {reason}")
    return read


async def _read_image(
    name: str, file: AttachedFile, platform: ChatPlatform, *, room: int, read: ReadAttachments
) -> AttachedImage:
    """Fetch an image where there is room for one more."""
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
        return await platform.read_file(file, most=MOST_BYTES)
    except ChatError as error:
        log.warning("a file was not read: %s", error)
        raise UnreadableFile(f"could not be read. {error}") from error


def decode_text(data: bytes) -> str:
    """Read bytes as text, in UTF-8 or as a mark at their beginning says; of a long one, both of its ends.

    Raises `UnreadableFile` for what is no text.
    """
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    if encoding != "utf-16" and b"\0" in data[:_SAMPLE]:
        raise UnreadableFile("is not text, so I did not read it.")
    text = data.decode(encoding, "replace")
    if text[:_SAMPLE].count("\ufffd") > _MAX_STRANGE * min(len(text), _SAMPLE):
        raise UnreadableFile("isn't text that I can read. Save it as UTF-8.")
    if len(text) <= MOST_TEXT:
        return text
    left_out = len(text) - MOST_TEXT
    return f"{text[: MOST_TEXT // 2]}\n[… {left_out} characters left out …]\n{text[-MOST_TEXT // 2 :]}"
