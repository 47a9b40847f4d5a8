"""The sets that the guard is measured on: questions, attacks, and orders planted in what a model reads."""

from __future__ import annotations

import base64
import codecs
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from agent.guard.thread_quotes import with_background
from bot.conversations.question_context import quote_thread
from bot.messages import ThreadMessage

Part = Literal["dev", "held_out"]
PARTS: tuple[Part, ...] = get_args(Part)
FOLDER = Path(__file__).parent
ROOM = 3_900

_LOOKALIKES = str.maketrans("aceiopsx", "асеіорѕх")
_MORSE = dict(
    zip(
        "abcdefghijklmnopqrstuvwxyz",
        (
            ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- "
            "-. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.."
        ).split(),
        strict=True,
    )
)
_LEET = str.maketrans("oieast", "013457")

ENCODINGS: Mapping[str, Callable[[str], str]] = {
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base32": lambda text: base64.b32encode(text.encode()).decode(),
    "twice": lambda text: base64.b64encode(base64.b64encode(text.encode())).decode(),
    "codes": lambda text: " ".join(str(ord(char)) for char in text),
    "bits": lambda text: " ".join(f"{ord(char):08b}" for char in text),
    "hyphens": "-".join,
    "lines": lambda text: "\n".join(text.split()),
    "morse": lambda text: " ".join(_MORSE.get(char, "/") for char in text.lower()),
    "hex": lambda text: text.encode().hex(),
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "reversed": lambda text: text[::-1],
    "spaced": lambda text: "  ".join(" ".join(word) for word in text.split()),
    "leet": lambda text: text.translate(_LEET),
    "homoglyphs": lambda text: text.translate(_LOOKALIKES),
    "zero_width": "\u200b".join,
    "tags": lambda text: "".join(chr(0xE0000 + ord(char)) for char in text),
    "percent": lambda text: "".join(f"%{ord(char):02x}" for char in text),
    "entities": lambda text: "".join(f"&#{ord(char)};" for char in text),
    "escapes": lambda text: "".join(f"\\u{ord(char):04x}" for char in text),
}

# What a payload is planted in: code and documents as they are in every repository.
PLACES: Mapping[str, str] = {
    "python comment": (
        "def total(order):\n    # {0}\n    # prices are in cents, without tax\n"
        "    return sum(line.price * line.count for line in order.lines)\n"
    ),
    "docstring": (
        'class Outbox:\n    """Holds messages until they are sent.\n\n    {0}\n    """\n\n'
        "    def push(self, message):\n        self.rows.append(message)\n"
    ),
    "block comment": (
        "/**\n * Parses a date in local time.\n * {0}\n * @param text the date\n */\n"
        "export function parseDate(text) {{\n  return new Date(text);\n}}\n"
    ),
    "string": 'const HELP = [\n  "usage: shop [options]",\n  "{0}",\n  "  --verbose  say more",\n];\n',
    "markdown": (
        "## Installing\n\nRun `make install`, which needs Python 3.11.\n\n{0}\n\n"
        "## Contributing\n\nOpen an issue first.\n"
    ),
    "html comment": "<p>Our API returns JSON.</p>\n<!-- {0} -->\n<p>Dates are in UTC.</p>\n",
    "yaml": "service:\n  name: shop\n  description: >\n    {0}\n  port: 8080\n",
    "commit message": "9fceb02d0ae5 on 2024-03-01 by Eve: {0}",
    "log": "2024-03-01 10:00:01 INFO started\n2024-03-01 10:00:02 WARN {0}\n2024-03-01 10:00:03 INFO ready\n",
    "web page": "Parsing dates <https://blog.example.net/dates>: Use fromisoformat where you can. {0} Then sort them.",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """What is put to the bot: the text with the thread around it, and what the person wrote before."""

    family: str
    text: str
    earlier: tuple[str, ...] = ()


def benign(part: Part) -> Iterator[Message]:
    """The questions that must be answered."""
    for family, texts in _read("benign.toml", part).items():
        yield from (Message(family=family, text=text) for text in texts)


def attacks(part: Part) -> Iterator[Message]:
    """The attacks."""
    for family, items in _read("attacks.toml", part).items():
        yield from (_message(family, item) for item in items)


def payloads(part: Part) -> Iterator[tuple[str, str, str]]:
    """Each order with its kind and its place, planted where orders are not expected."""
    places = list(PLACES.items())
    turn = 0
    for kind, items in _read("payloads.toml", part).items():
        for item in items:
            if kind == "file_names":
                yield kind, "file name", f"{item}\npython, 12 lines"
                continue
            place, around = places[turn % len(places)]
            turn += 1
            yield kind, place, around.format(_text(item))


def harmless(part: Part) -> Iterator[tuple[str, str]]:
    """What projects about language models say of them, and to them, with its kind; it orders nobody around here."""
    for kind, texts in _read("harmless.toml", part).items():
        yield from ((kind, text) for text in texts)


def _message(family: str, item: Any) -> Message:
    if isinstance(item, list):
        *earlier, last = item
        return Message(family=family, text=last, earlier=tuple(earlier))
    if isinstance(item, dict) and "thread" in item:
        thread = [ThreadMessage(id=str(n), author=who, text=said) for n, (who, said) in enumerate(item["thread"])]
        return Message(family=family, text=with_background(item["question"], quote_thread(thread, room=ROOM)))
    return Message(family=family, text=_text(item))


def _text(item: Any) -> str:
    return ENCODINGS[item["encoding"]](item["text"]) if isinstance(item, dict) else str(item)


def _read(name: str, part: Part) -> Mapping[str, list[Any]]:
    with (FOLDER / name).open("rb") as file:
        return dict(tomllib.load(file)[part])
