"""Measures the check of citations: `python -m benchmarks.citations --mirrors DIR`.

`benchmarks/citations/` has, for each public repository, answers as models write them: a question, the lines that were
shown for it, and the answer with its citations, every one of them true. `also` names what else shows the same. Each
citation is checked as it was written, with its lines, and again as the whole of what was shown; then it is replaced by
a wrong one: by another exhibit of the same turn (`wrong`, which was drawn by lot), whole, and as many lines of it,
from a place drawn by lot. A wrong citation counts as accepted where it stays; one that is led to another place or is
taken out does not. The lines are read from the clones. The rule that the table compares with kept what holds any name
of the sentence, or any of its words where it has none. What is in `held_out/` was never looked at for tuning.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import cast

from agent.citations.citation_check import verify_citations
from agent.citations.claims import find_identifiers, find_names
from agent.ports import CodeSearch
from agent.prompts.model_text import CitationParser
from agent.prompts.prompt_evidence import PromptEvidence
from agent.questions.terms import find_content_terms, match_terms
from agent.text.citation_markers import find_markers
from benchmarks.keyless import HELD_OUT
from benchmarks.retrieval import _mirror
from indexer.parsing.file_parser import parse_file
from indexer.types import Definition, Location, Passage, Symbol

ANSWERS = Path(__file__).with_name("citations")
FORMS = ("as written", "whole")

_EXHIBIT = re.compile(r"(?P<path>\S+):(?P<start>\d+)-(?P<end>\d+)(?: (?P<about>.*))?")
_CITATION = re.compile(r"\[E(?P<number>\d+):(?P<start>\d+)(?:-(?P<end>\d+))?\]")


@dataclass(kw_only=True, slots=True)
class MirroredCode:
    """The files of one commit in a bare clone, as the check reads them."""

    mirror: Path
    commit: str
    texts: dict[str, str] = field(default_factory=dict)
    symbols: dict[str, Sequence[Symbol]] = field(default_factory=dict)

    def read_text(self, path: str) -> str:
        """Read a file of the commit."""
        if path not in self.texts:
            command = ["git", "-C", str(self.mirror), "show", f"{self.commit}:{path}"]
            self.texts[path] = subprocess.run(command, capture_output=True, check=True).stdout.decode(errors="replace")
        return self.texts[path]

    async def read(self, path: str, start_line: int = 1, end_line: int | None = None) -> Passage:
        """Read lines, clipped to the end of the file."""
        lines = self.read_text(path).split("\n")
        end = min(end_line or len(lines), len(lines))
        start = max(1, min(start_line, end))
        location = Location(path=path, start_line=start, end_line=end)
        return Passage(location=location, text="\n".join(lines[start - 1 : end]), language="")

    async def find_enclosing(self, location: Location) -> Sequence[Definition]:
        """Return the definitions around a location, outermost first."""
        if location.path not in self.symbols:
            self.symbols[location.path] = parse_file(location.path, self.read_text(location.path)).symbols
        return [
            Definition(path=location.path, symbol=symbol)
            for symbol in self.symbols[location.path]
            if symbol.start_line <= location.start_line and location.end_line <= symbol.end_line
        ]


@dataclass(frozen=True, kw_only=True)
class CitedTurn:
    """An answer with true citations, what was shown for it, and for each citation a wrong one and what is as true."""

    repository: str
    question: str
    exhibits: Sequence[PromptEvidence]
    answer: str
    wrong: Sequence[int]
    also: Sequence[frozenset[int]]
    code: MirroredCode

    @cached_property
    def citations(self) -> Sequence[Location]:
        """The lines that are cited, in the order of the answer."""
        return [
            Location(
                path=self.exhibits[int(found["number"]) - 1].location.path,
                start_line=int(found["start"]),
                end_line=int(found["end"] or found["start"]),
            )
            for found in _CITATION.finditer(self.answer)
        ]

    @cached_property
    def shown(self) -> Sequence[Location]:
        """The exhibits that are cited, in the order of the answer."""
        return [self.exhibits[int(found["number"]) - 1].location for found in _CITATION.finditer(self.answer)]

    def write(self, form: str, *, instead: Mapping[int, str] | None = None) -> str:
        """Write the answer with its citations in a form, some of them replaced."""
        new = []
        for at, found in enumerate(_CITATION.finditer(self.answer)):
            true = found[0] if form == "as written" else f"[E{found['number']}]"
            new.append((instead or {}).get(at, true))
        replacements = iter(new)
        return _CITATION.sub(lambda _: next(replacements), self.answer)

    def draw_wrong(self, at: int, form: str) -> tuple[str, Location]:
        """Return a wrong citation for one of the answer, and where it leads."""
        exhibit = self.exhibits[self.wrong[at] - 1]
        if form == "whole":
            return f"[E{exhibit.number}]", exhibit.location
        true, place = self.citations[at], exhibit.location
        length = min(true.end_line - true.start_line, place.end_line - place.start_line)
        lot = random.Random(f"{self.question} {at}")
        start = lot.randint(place.start_line, place.end_line - length)
        lines = replace(place, start_line=start, end_line=start + length)
        return f"[E{exhibit.number}:{lines.start_line}-{lines.end_line}]", lines


def read_turns(folder: Path, mirrors: Path) -> Iterator[CitedTurn]:
    """Read the answers about the repositories that are there; of another one, say that it is skipped."""
    for file in sorted(folder.glob("*.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        mirror = _mirror(mirrors, record["url"], record["name"])
        if mirror is None:
            print(f"skipped {record['name']}: no copy of {record['url']} below {mirrors}")
            continue
        code = MirroredCode(mirror=mirror, commit=record["commit"])
        for turn in record["turns"]:
            yield CitedTurn(
                repository=record["name"],
                question=turn["question"],
                exhibits=[_read_exhibit(text, number, code) for number, text in enumerate(turn["exhibits"], 1)],
                answer="\n".join(turn["answer"]),
                wrong=[int(mark["wrong"][1:]) for mark in turn["marks"]],
                also=[frozenset(int(each[1:]) for each in mark.get("also", ())) for mark in turn["marks"]],
                code=code,
            )


def _read_exhibit(text: str, number: int, code: MirroredCode) -> PromptEvidence:
    found = _EXHIBIT.fullmatch(text)
    if found is None:
        raise ValueError(f"no exhibit: {text}")
    place = Location(path=found["path"], start_line=int(found["start"]), end_line=int(found["end"]))
    lines = code.read_text(place.path).split("\n")[place.start_line - 1 : place.end_line]
    return PromptEvidence(number=number, location=place, about=found["about"] or "", text="\n".join(lines))


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What became of one citation: by the check, and by the rule of names alone."""

    turn: CitedTurn
    at: int
    form: str
    is_true: bool
    is_kept: bool
    is_kept_by_names: bool


async def check_turn(turn: CitedTurn) -> list[Outcome]:
    """Check the true citations of an answer, and the wrong ones that replace them, one at a time."""
    outcomes: list[Outcome] = []
    for form in FORMS:
        places = await _check(turn, turn.write(form))
        for at, place in enumerate(turn.citations if form == "as written" else turn.shown):
            outcomes.append(_judge(turn, at, form, place, places[at], is_true=True))
        for at in range(len(turn.citations)):
            written, wrong = turn.draw_wrong(at, form)
            places = await _check(turn, turn.write(form, instead={at: written}))
            outcomes.append(_judge(turn, at, form, wrong, places[at], is_true=False))
    return outcomes


async def _check(turn: CitedTurn, answer: str) -> Sequence[Location | None]:
    parser = CitationParser(turn.exhibits, lambda text: text)
    text = "\n".join(map(parser.prose, answer.split("\n")))
    evidence = [exhibit.ref for exhibit in turn.exhibits]
    checked = await verify_citations(text, parser.citations, evidence, cast("CodeSearch", turn.code), by_model=True)
    return checked.places


def _judge(turn: CitedTurn, at: int, form: str, cited: Location, place: Location | None, *, is_true: bool) -> Outcome:
    return Outcome(
        turn=turn,
        at=at,
        form=form,
        is_true=is_true,
        is_kept=place == cited,
        is_kept_by_names=_has_name(turn, at, cited),
    )


def _has_name(turn: CitedTurn, at: int, cited: Location) -> bool:
    sentence = find_markers(_number_citations(turn.answer))[at].claim
    lines = turn.code.read_text(cited.path).split("\n")[cited.start_line - 1 : cited.end_line]
    text = "\n".join(lines)
    if names := find_names(sentence):
        return bool(names & find_identifiers(text))
    return bool(match_terms(f"{cited.path} {text}", find_content_terms(sentence)))


def _number_citations(answer: str) -> str:
    numbers = iter(range(1, 1_000))
    return _CITATION.sub(lambda _: f"[{next(numbers)}]", answer)


def table(outcomes: Sequence[Outcome]) -> str:
    """One line a form and one for both: how many true citations are kept, and how many wrong ones."""
    lines = [f"{'citations':12} {'of each':>7}   {'true kept':>17}   {'wrong accepted':>17}   (by names alone)"]
    for form in (*FORMS, "all"):
        chosen = [each for each in outcomes if form in (each.form, "all")]
        true = [each for each in chosen if each.is_true]
        wrong = [each for each in chosen if not each.is_true]
        lines.append(f"{form:12} {len(true):7}   {_show_share(true):>17}   {_show_share(wrong):>17}")
    return "\n".join(lines)


def _show_share(outcomes: Sequence[Outcome]) -> str:
    kept = sum(each.is_kept for each in outcomes) / len(outcomes)
    before = sum(each.is_kept_by_names for each in outcomes) / len(outcomes)
    return f"{100 * kept:.1f} % ({100 * before:.1f} %)"


def show_outcome(outcome: Outcome) -> str:
    """One line for a citation that was judged wrongly."""
    found = list(_CITATION.finditer(outcome.turn.answer))[outcome.at]
    claim = find_markers(_number_citations(outcome.turn.answer))[outcome.at]
    what = "lost" if outcome.is_true else f"accepted E{outcome.turn.wrong[outcome.at]} for"
    return f"{outcome.turn.repository:14} {outcome.form:10} {what} {found[0]}: {claim.words.strip()}"


async def run(arguments: argparse.Namespace) -> None:
    """Check the citations of both halves and print a table for each."""
    for name, folder in (("tuned on", arguments.answers), ("held out", arguments.answers / HELD_OUT)):
        outcomes = [each for turn in read_turns(folder, arguments.mirrors) for each in await check_turn(turn)]
        if arguments.each and name == "tuned on":
            print("\n".join(show_outcome(each) for each in outcomes if each.is_kept != each.is_true))
        print(f"\n{name}\n{table(outcomes)}" if outcomes else f"{name}: nothing to measure.")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mirrors", type=Path, default=Path("../.mirror"), help="folder of clones")
    parser.add_argument("--answers", type=Path, default=ANSWERS, help="folder of answers")
    parser.add_argument("--each", action="store_true", help="also list what was judged wrongly, of the half tuned on")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
