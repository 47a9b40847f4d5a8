"""Pairs of what somebody may ask and the chunk that answers it, found in a package without anybody's judgement."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from indexer.types import Chunk
from scripts.static_training.comments import find_file_comment, is_description, split_question
from scripts.static_training.corpus import CodeFile, Corpus, Place

MAX_REPEATS = 3  # a sentence written more often describes nothing

_TITLE = re.compile(r"\b(?:it|test|should|specify|scenario|t\.Run|TEST_CASE)\b ?\(? ?([\"'`])([^\"'`\n]{8,120})\1")
_TEST_NAME = re.compile(r"(?i:test|should)_?")
_HEADING = re.compile(r"\n(?=#{1,6} )|\n(?=[^\n]+\n(?:={4,}|-{4,}|~{4,}|\^{4,})\n)")
_NOT_PROSE = re.compile(r"```[^`]*```|^(?: {4}|\t|\.\. ).*$|<[^<>\n]{1,200}>|\]\([^()\n]{0,200}\)", re.MULTILINE)
_QUOTED_NAME = re.compile(r"`+:?(?:\w+:`)?~?([\w.:]{1,100})(?:\(\))?`+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """A question's words, and header and body of a view of a chunk; views of one chunk have one `group`."""

    kind: str
    question: list[str]
    header: str
    body: str
    group: str
    folder: str


def find_pairs(corpus: Corpus, rng: random.Random, most: int) -> Iterator[Pair]:
    """Find pairs of every kind, at most so many documented definitions and a share of that of each other kind."""
    rng.shuffle(corpus.places)
    rng.shuffle(corpus.files)
    yield from islice(_pair_comments(corpus), 2 * most)
    yield from islice(_pair_names(corpus), most // 4)
    yield from islice(_pair_file_comments(corpus), most // 4)
    yield from islice(_pair_tests(corpus), most // 5)
    yield from islice(_pair_paragraphs(corpus, rng), most // 8)


def _pair_comments(corpus: Corpus) -> Iterator[Pair]:
    """A documentation comment, its first sentence and the whole, with the chunk that it was taken out of."""
    written = corpus.count_sentences()
    for place in corpus.places:
        comment = place.file.find_comment(place.symbol) if written[place.symbol.doc] <= MAX_REPEATS else None
        if comment is None or not is_description(comment.prose):
            continue
        header, body = make_header(place.file, place.chunk), _cut_rows(place, comment.first + 1, comment.last + 1)
        short, whole = split_question(comment.sentence, 30), split_question(comment.prose)
        if len(set(short)) >= 3:
            yield _make_pair("doc", short, place.file, place.chunk, header=header, body=body)
        if len(whole) > len(short) + 4:
            yield _make_pair("long", whole, place.file, place.chunk, header=header, body=body)


def _pair_names(corpus: Corpus) -> Iterator[Pair]:
    """The name of a definition that nothing documents, with the chunk without that name."""
    for place in corpus.places:
        symbol, file = place.symbol, place.file
        words = split_question(symbol.name)
        if symbol.doc or file.is_test or len(words) < 2 or symbol.end_line - symbol.start_line < 4:
            continue
        header = make_header(file, place.chunk, without=symbol.name)
        yield _make_pair(
            "name", words, file, place.chunk, header=header, body=place.chunk.text.replace(symbol.name, " ")
        )


def _pair_file_comments(corpus: Corpus) -> Iterator[Pair]:
    """What a file says of itself, with its first chunk and the one that defines most."""
    for file in corpus.files:
        comment = None if file.is_test else find_file_comment(file.lines)
        if comment is None:
            continue
        chunks = file.parsed.chunks
        for chunk in {id(each): each for each in (chunks[0], max(chunks, key=_weigh_chunk))}.values():
            lines = chunk.text.split("\n")
            kept = (
                line for row, line in enumerate(lines, chunk.start_line - 1) if not comment.first <= row <= comment.last
            )
            words = split_question(comment.prose, 40)
            yield _make_pair("file", words, file, chunk, header=make_header(file, chunk), body="\n".join(kept))


def _weigh_chunk(chunk: Chunk) -> int:
    return 200 * len(chunk.names) + len(chunk.text)


def _pair_tests(corpus: Corpus) -> Iterator[Pair]:
    """What a test is called, with the rarest definition that it calls."""
    asked: Counter[str] = Counter()
    for file in corpus.files:
        if not file.is_test:
            continue
        for title, first, last in _find_tests(file):
            words = split_question(title, 24)
            called = Counter(each.name for each in file.parsed.references if first <= each.line <= last)
            known = [name for name in called if asked[name] < 12 and corpus.find_definitions(name)]
            if len(set(words)) < 3 or not known:
                continue
            name = min(known, key=lambda name: (len(corpus.find_definitions(name)), asked[name], -called[name], name))
            asked[name] += 1
            place = corpus.find_definitions(name)[0]
            header = make_header(place.file, place.chunk)
            yield _make_pair("test", words, place.file, place.chunk, header=header, body=place.chunk.text)


def _find_tests(file: CodeFile) -> Iterator[tuple[str, int, int]]:
    """Return title, first and last line of each test."""
    for symbol in file.parsed.symbols:
        if (prefix := _TEST_NAME.match(symbol.name)) and symbol.end_line - symbol.start_line >= 2:
            yield symbol.name[prefix.end() :], symbol.start_line, symbol.end_line
    for row, line in enumerate(file.lines, 1):
        if (title := _TITLE.search(line[:300])) is not None:
            yield title[2], row, row + 20


def _pair_paragraphs(corpus: Corpus, rng: random.Random) -> Iterator[Pair]:
    """A paragraph for people that names one or two definitions, with the chunk of one of them."""
    for text in corpus.texts:
        for section in _HEADING.split(text):
            heading = section.strip().partition("\n")[0]
            for paragraph in _NOT_PROSE.sub(" ", section).split("\n\n"):
                named = {re.split(r"[.:]+", name)[-1] for name in _QUOTED_NAME.findall(paragraph)}
                known = sorted(name for name in named if corpus.find_definitions(name))
                if 1 <= len(known) <= 2 and is_description(paragraph):
                    name = rng.choice(known)
                    shown = paragraph.replace(name, " ") if rng.random() < 0.6 else paragraph
                    place = corpus.find_definitions(name)[0]
                    header = make_header(place.file, place.chunk)
                    words = split_question(f"{heading} {shown}")
                    yield _make_pair("docs", words, place.file, place.chunk, header=header, body=place.chunk.text)


def make_header(file: CodeFile, chunk: Chunk, without: str = "") -> str:
    """Return what the index tells the embedder of where a chunk stands, except one name."""
    return " ".join((file.path, chunk.scope, *(name for name in chunk.names[:20] if name != without)))


def _cut_rows(place: Place, first: int, last: int) -> str:
    lines: Sequence[str] = place.chunk.text.split("\n")
    return "\n".join(line for row, line in enumerate(lines, place.chunk.start_line) if not first <= row <= last)


def _make_pair(kind: str, question: list[str], file: CodeFile, chunk: Chunk, *, header: str, body: str) -> Pair:
    return Pair(
        kind=kind,
        question=question,
        header=header,
        body=body,
        group=f"{file.path}:{chunk.start_line}",
        folder=file.path.rpartition("/")[0],
    )
