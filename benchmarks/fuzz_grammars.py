"""Tries grammars on broken text in the pool of parsers, as each new one is before it ships.

    python -m benchmarks.fuzz_grammars [--mutations 4000] [LANGUAGE ...]

Each language needs a file in `tests/indexer/parsing/sources`. Its text is mutated, and signs that open something are
nested 20,000 deep. Prints how often the parser ended, and over which text first; 0 is wanted of crashes and timeouts.
"""

from __future__ import annotations

import argparse
import logging
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

from indexer.parser_pool.pool import ParserPool
from indexer.parser_pool.wire_format import ParsedContents, Request, SkippedFile
from indexer.text.languages import detect_language

SOURCES = Path(__file__).parent.parent / "tests" / "indexer" / "parsing" / "sources"
SIGNS = (
    "(",
    "[",
    "{",
    "<",
    "${",
    "#{",
    "<<A\n",
    '"',
    "'",
    "/*",
    "(*",
    "if ",
    "begin ",
    "<<E\n$s",
    "\0",
    "é",
    "{-",
    "`",
    "=",
)
AT_ONCE = 64


def main() -> None:
    """Fuzz, and print a line for each language."""
    parser = argparse.ArgumentParser(description="Fuzzes grammars.")
    parser.add_argument("languages", nargs="*")
    parser.add_argument("--mutations", type=int, default=4_000)
    asked = parser.parse_args()
    logging.disable()
    with_sources = {detect_language(path.name, ""): path for path in sorted(SOURCES.iterdir()) if path.suffix != ".txt"}
    for language in asked.languages or with_sources:
        pool = ParserPool()
        found = fuzz_language(pool, with_sources[language], asked.mutations)
        pool.close()
        print(
            f"{language:<14} {sum(found.values()):>6} texts  "
            + ", ".join(f"{n} {why}" for why, n in found.items() if why)
        )


def fuzz_language(pool: ParserPool, path: Path, count: int) -> Counter[str]:
    """Count why texts were read as plain text, the empty string for those that were parsed."""
    waiting: list[Future[ParsedContents | SkippedFile]] = []
    found: Counter[str] = Counter()
    for data in make_texts(path.read_bytes(), count):
        waiting.append(pool.submit(Request(path=path.name, data=data)))
        if len(waiting) >= AT_ONCE:
            found[read_outcome(waiting.pop(0).result())] += 1
    found.update(read_outcome(each.result()) for each in waiting)
    return found


def read_outcome(contents: ParsedContents | SkippedFile) -> str:
    return f"left out: {contents.reason}" if isinstance(contents, SkippedFile) else contents.parsed.plain or ""


def make_texts(source: bytes, count: int) -> Iterator[bytes]:
    """Yield texts that are nearly the source: pieces cut out, doubled or replaced by signs; and deep nesting."""
    draw = random.Random(1)
    for _ in range(count):
        text = bytearray(source)
        for _ in range(draw.randint(1, 8)):
            start = draw.randrange(len(text) + 1)
            end = min(len(text), start + draw.randint(0, 40))
            piece = draw.choice(SIGNS).encode()
            text[start:end] = draw.choice((b"", bytes(text[start:end]) * 2, piece, piece * draw.randint(1, 50)))
        yield bytes(text)
    for sign in SIGNS:
        nested = (sign.encode() * 80 + b"\n") * 250  # longer lines would be those of minified code
        yield nested
        yield source + nested


if __name__ == "__main__":
    main()
