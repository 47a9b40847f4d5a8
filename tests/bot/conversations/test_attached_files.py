"""Files that people attach: what is text in them, what is not, and how much of it is read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversations.question_context import MAX_IMAGES, MAX_TEXT, UnreadableFile, decode_text, read_attachments
from bot.errors import PlatformUnreachable
from bot.messages import AttachedFile, IncomingMessage, Place
from tests.fakes.clock import FakeClock
from tests.fakes.platform import FakePlatform


def make_message(*files: AttachedFile, quoted: tuple[str, ...] = ()) -> IncomingMessage:
    place = Place(platform="fake", workspace="W", channel="C")
    return IncomingMessage(
        place=place, id="1", author="ann", text="why?", kind="mention", sent_at=0.0, files=files, quoted=quoted
    )


def make_file(name: str, media_type: str = "text/plain") -> AttachedFile:
    return AttachedFile(name=name, media_type=media_type, size=3, url=f"fake:{name}")


async def test_a_model_that_takes_images_gets_the_first_few() -> None:
    platform = FakePlatform(FakeClock())
    images = [make_file(f"{number}.png", "image/png") for number in range(MAX_IMAGES + 1)]
    platform.files = {image.url: image.name.encode() for image in images}

    read = await read_attachments(make_message(*images), platform, takes_images=True, mask=str)

    assert [image.data for image in read.images] == [b"0.png", b"1.png", b"2.png", b"3.png"]
    assert read.remarks == ["`4.png` was skipped: I looked only at the first 4 images."]


async def test_what_cannot_be_fetched_is_named_without_its_secrets() -> None:
    platform = FakePlatform(FakeClock())

    read = await read_attachments(
        make_message(make_file("a`hunter2`\n.log"), quoted=("KeyError",)),
        platform,
        takes_images=False,
        mask=lambda text: text.replace("hunter2", "[masked]"),
    )

    assert read.remarks == ["`a[masked] .log` could not be read. It cannot be fetched."]
    assert [text.text for text in read.texts] == ["KeyError"]


async def test_a_platform_that_is_away_does_not_keep_the_question() -> None:
    class Away(FakePlatform):
        async def read_file(self, file: AttachedFile, *, most: int) -> bytes:
            raise PlatformUnreachable("It does not answer.")

    read = await read_attachments(make_message(make_file("a.log")), Away(FakeClock()), takes_images=False, mask=str)

    assert read.remarks == ["`a.log` could not be read. It does not answer."]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain", "plain"),
        ("größer".encode(), "größer"),
        (b"\xef\xbb\xbfmarked", "marked"),
        ("weit".encode("utf-16"), "weit"),
        (b"", ""),
    ],
)
def test_text_is_read_in_its_encoding(data: bytes, text: str) -> None:
    assert decode_text(data) == text


@pytest.mark.parametrize("data", [b"PK\x03\x04\0\0", bytes(range(128, 256)) * 20])
def test_what_is_no_text_is_not_read(data: bytes) -> None:
    with pytest.raises(UnreadableFile):
        decode_text(data)


@given(st.binary(max_size=2_000).map(lambda data: data * 200))
def test_of_any_file_no_more_is_read_than_there_is_room_for(data: bytes) -> None:
    try:
        text = decode_text(data)
    except UnreadableFile:
        return
    assert len(text) <= MAX_TEXT + 60
