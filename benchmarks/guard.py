"""Measures the guard: `python -m benchmarks.guard [--questions FOLDER] [--repositories FOLDER]`.

Three tables: what happens to everyday questions and to attacks, by family; which orders planted in code, documents and
pages are flagged, by kind; and how many of the chunks of clean repositories are, cut as the index cuts them. Each of
our own sets has a part that nothing was tuned on. `--questions` names a folder of JSON files, lists of objects with a
`query`, that must all be answered; `--repositories` a folder of git repositories in which nobody orders a model around.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from agent.guard.evidence_check import find_orders, list_rules
from agent.guard.injection.normalization import normalize_question
from agent.guard.injection.verdict import InjectionVerdict, judge_injection
from agent.nodes.security_gateway import judge_question
from indexer.errors import IndexerError
from indexer.git.repository import Repository
from indexer.parser_pool.wire_format import ParsedContents, Request
from indexer.parser_pool.worker import parse_source
from tests.agent.guard.sets import PARTS, Message, attacks, benign, harmless, payloads

Row = Sequence[object]
PARSING_SECONDS = 10.0  # for a file


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=Path, help="a folder of JSON files with questions that must be answered")
    parser.add_argument("--repositories", type=Path, help="a folder of git repositories")
    parser.add_argument("--verbose", action="store_true", help="name what was judged wrongly, but for held-out parts")
    arguments = parser.parse_args()
    show(["questions", "number", "watched", "blocked"], questions(arguments.questions, verbose=arguments.verbose))
    show(["attacks", "number", "watched", "blocked", "caught"], caught(verbose=arguments.verbose))
    show(["planted orders", "number", "flagged", "share"], flagged(verbose=arguments.verbose))
    if arguments.repositories is not None:
        found = clean(arguments.repositories, verbose=arguments.verbose)
        show(["chunks of", "number", "flagged", "share", "ms each", "slowest"], found)


def questions(folder: Path | None, *, verbose: bool) -> Iterator[Row]:
    """Judge what must be answered."""
    for part in PARTS:
        yield from _by_family(f"everyday, {part}", list(benign(part)), verbose=verbose and part == "dev")
    for path in sorted(folder.glob("*.json")) if folder is not None else ():
        texts = [each["query"] for each in json.loads(path.read_text(encoding="utf-8")) if "query" in each]
        if texts:
            verdicts = Counter(judge_injection(normalize_question(text)).name for text in texts)
            yield path.stem, len(texts), verdicts["watch"], verdicts["block"]


def _by_family(name: str, messages: Sequence[Message], *, verbose: bool) -> Iterator[Row]:
    verdicts = [(each.family, judge_message(each).name) for each in messages]
    for family in dict.fromkeys(family for family, _ in verdicts):
        said = Counter(verdict for each, verdict in verdicts if each == family)
        yield f"  {family}", said.total(), said["watch"], said["block"]
    said = Counter(verdict for _, verdict in verdicts)
    yield f"{name}: all", said.total(), said["watch"], said["block"]
    if verbose:
        _tell(f"{each.family}: {each.text}" for each in messages if judge_message(each).name != "allow")


def caught(*, verbose: bool) -> Iterator[Row]:
    """Judge attacks."""
    for part in PARTS:
        messages = list(attacks(part))
        verdicts = [(each.family, judge_message(each).name) for each in messages]
        for family in dict.fromkeys(family for family, _ in verdicts):
            yield _caught(f"  {family}", [verdict for each, verdict in verdicts if each == family])
        yield _caught(f"attacks, {part}: all", [verdict for _, verdict in verdicts])
        yield _find_worst(part, [(each, verdict != "allow") for each, verdict in verdicts])
        if verbose and part == "dev":
            _tell(f"{each.family}: {each.text}" for each in messages if judge_message(each).name == "allow")


def judge_message(message: Message) -> InjectionVerdict:
    """Judge a message as the gateway does, with what was written before it and around it."""
    return judge_question(message.text, message.earlier)


def _find_worst(part: str, found: Sequence[tuple[str, bool]]) -> Row:
    """Name the family of which least is caught: a mean hides it."""
    shares = {
        family: [hit for each, hit in found if each == family] for family in dict.fromkeys(each for each, _ in found)
    }
    worst = min(shares, key=lambda family: sum(shares[family]) / len(shares[family]))
    return f"worst, {part}: {worst}", len(shares[worst]), "", "", _share(sum(shares[worst]), len(shares[worst]))


def _caught(name: str, verdicts: Sequence[str]) -> Row:
    said = Counter(verdicts)
    return name, said.total(), said["watch"], said["block"], _share(said["watch"] + said["block"], said.total())


def flagged(*, verbose: bool) -> Iterator[Row]:
    """Look for planted orders."""
    for part in PARTS:
        found = [(kind, place, text, bool(find_orders(text.split("\n")))) for kind, place, text in payloads(part)]
        for kind in dict.fromkeys(kind for kind, *_ in found):
            hits = [hit for each, _, _, hit in found if each == kind]
            yield f"  {kind}", len(hits), sum(hits), _share(sum(hits), len(hits))
        hits = [hit for *_, hit in found]
        yield f"planted, {part}: all", len(hits), sum(hits), _share(sum(hits), len(hits))
        name, number, *_, share = _find_worst(part, [(kind, hit) for kind, _, _, hit in found])
        yield name, number, "", share
        if verbose and part == "dev":
            _tell(f"{kind} in a {place}: {text}" for kind, place, text, hit in found if not hit)
        wrongly = [(kind, text) for kind, text in harmless(part) if find_orders(text.split("\n"))]
        number = sum(1 for _ in harmless(part))
        yield f"harmless, {part}: all", number, len(wrongly), _share(len(wrongly), number)
        if verbose and part == "dev":
            _tell(f"{kind}: {text}" for kind, text in wrongly)


def clean(folder: Path, *, verbose: bool) -> Iterator[Row]:
    """Look for orders if there are none."""
    every = Counter[str]()
    for root in sorted(path for path in folder.iterdir() if path.is_dir()):
        number = flags = 0
        seconds = slowest = 0.0
        for path, text in chunks(root):
            began = time.thread_time()
            found = find_orders(text.split("\n"))
            took = time.thread_time() - began
            number, flags, seconds, slowest = number + 1, flags + bool(found), seconds + took, max(slowest, took)
            if found and verbose:
                lines = text.split("\n")
                shown = " ".join(lines[found[0].first : found[0].last + 1])[:200]
                _tell([f"{root.name}/{path}: {', '.join(list_rules(found))}: {shown}"])
        every.update(number=number, flags=flags)
        if number:
            each = f"{1000 * seconds / number:.3f}"
            yield root.name, number, flags, _share(flags, number, 3), each, f"{1000 * slowest:.1f}"
    yield "all", every["number"], every["flags"], _share(every["flags"], every["number"], 3), "", ""


def chunks(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the chunks of a repository's files as the index cuts them."""
    try:
        with Repository.open(root) as repository:
            entries = repository.files(repository.commit().sha).entries
            blobs = repository.iter_blobs(entry.blob for entry in entries)
            for entry, (_, data) in zip(entries, blobs, strict=True):
                read = parse_source(Request(path=entry.path, data=data, marks=entry.marks), seconds=PARSING_SECONDS)
                if isinstance(read, ParsedContents):
                    yield from ((entry.path, chunk.text) for chunk in read.parsed.chunks)
    except IndexerError as error:
        print(f"{root}: {error}")


def show(heading: Sequence[str], rows: Iterable[Row]) -> None:
    """Print a table."""
    print("| " + " | ".join(heading) + " |\n|" + "---|" * len(heading))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
    print()


def _share(part: int, whole: int, digits: int = 0) -> str:
    return f"{100 * part / whole:.{digits}f} %" if whole else "-"


def _tell(lines: Iterable[str]) -> None:
    for line in lines:
        print("    " + line.replace("\n", " / ")[:300])


if __name__ == "__main__":
    main()
