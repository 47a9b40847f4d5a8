"""Measures the check of citations: `python -m benchmarks.citations --mirrors DIR`.

`benchmarks/citations/` has, for each public repository, answers as models write them: a question, the lines that were
shown for it, and the answer with its citations, every one of them true. `also` names what else shows the same. Each
citation is checked as it was written, with its lines, and again as the whole of what was shown; then it is replaced by
a wrong one: by another exhibit of the same turn (`wrong`, which was drawn by lot), whole, and as many lines of it,
from a place drawn by lot. What is in `held_out/` was never looked at for tuning. `claims/` has single claims in five
languages, in tables and about commits, each with a twin that the same lines contradict. `blind/` and `blind_held_out/`
have as many again, by somebody who had not read the rules of the check; the second were looked at for nothing.

A citation is `plain` where it stays as it is, `unverified` where it stays with that word, and else `out`. Of true ones
as many as possible should be plain, of wrong ones as few. `was` is what the check before this one made of the same
sets (`BEFORE`).

With `--check`, doubtful citations are read again by the model that is configured for it. With `--prompts FILE`, each
prompt of such a reading is written to a file instead, a JSON object a line, and a verdict is taken where the file has
`reply` in its line: so that somebody who sees nothing else can answer them.
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
from typing import Any, cast

from langchain_core.messages import BaseMessage

from agent.answering.claim_reading import read_again
from agent.citations.citation_check import examine_citations
from agent.citations.citation_fit import Doubt
from agent.errors import ModelUnavailable
from agent.limits import Budget, TurnLimits
from agent.ports import ChatModel, CodeSearch, Deps, Form, TurnModels
from agent.prompts.model_text import CitationParser
from agent.prompts.prompt_evidence import PromptEvidence
from benchmarks.keyless import HELD_OUT
from benchmarks.retrieval import _mirror
from bot.app import open_models
from bot.settings import Settings
from indexer.parsing.file_parser import parse_file
from indexer.types import Definition, Location, Passage, Symbol

ANSWERS = Path(__file__).with_name("citations")
UNLIMITED = TurnLimits(seconds=86_400, tokens=10**9, calls=10**6)
FORMS = ("as written", "whole")
CLAIMS = "claims"
SETS = ("tuned on", HELD_OUT, CLAIMS, "blind", "blind_held_out")
FATES = ("plain", "unverified", "out")
KINDS = ("true", "swapped", "contradicted")
# In percent, on the sets as they are, of the check that weighed words alone and led marks to other lines; of the blind
# sets by the rules before they were written.
BEFORE: Mapping[str, Mapping[str, Sequence[float]]] = {
    "tuned on": {"true": (99.2, 0, 0.8), "swapped": (3.5, 0, 96.5)},
    "held_out": {"true": (99.5, 0, 0.5), "swapped": (5.6, 0, 94.4)},
    "claims": {"true": (93.1, 0, 6.9), "swapped": (17.9, 0, 82.1), "contradicted": (71.1, 0, 28.9)},
    "blind": {"true": (90.7, 9.3, 0), "swapped": (36.0, 64.0, 0), "contradicted": (76.0, 24.0, 0)},
    "blind_held_out": {"true": (83.7, 16.3, 0), "swapped": (11.6, 88.4, 0), "contradicted": (60.5, 39.5, 0)},
}

_EXHIBIT = re.compile(r"(?P<path>\S+):(?P<start>\d+)-(?P<end>\d+)(?: (?P<about>.*))?")
_COMMIT = re.compile(r"commit (?P<sha>\w+)")
_CITATION = re.compile(r"\[E(?P<number>\d+)(?::(?P<start>\d+)(?:-(?P<end>\d+))?)?\]")


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
    """An answer with true citations, what was shown for it, and for each citation a wrong one.

    `twins` are answers in which one claim, by the number of its citation, says what the lines contradict.
    """

    repository: str
    question: str
    exhibits: Sequence[PromptEvidence]
    answer: str
    wrong: Sequence[int]
    code: MirroredCode
    twins: Mapping[int, str] = field(default_factory=dict)

    @cached_property
    def citations(self) -> Sequence[Location]:
        """The lines that are cited, in the order of the answer."""
        return [self._find_lines(found) for found in _CITATION.finditer(self.answer)]

    def _find_lines(self, found: re.Match[str]) -> Location:
        whole = self.exhibits[int(found["number"]) - 1].location
        if not found["start"]:
            return whole
        return replace(whole, start_line=int(found["start"]), end_line=int(found["end"] or found["start"]))

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
        if form == "whole" or not exhibit.location.path:
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
            exhibits = [_read_exhibit(text, number, code) for number, text in enumerate(turn["exhibits"], 1)]
            common = {"repository": record["name"], "question": turn["question"], "exhibits": exhibits, "code": code}
            if CLAIMS in turn:
                yield _read_claims(turn[CLAIMS], common)
            else:
                wrong = [int(mark["wrong"][1:]) for mark in turn["marks"]]
                yield CitedTurn(answer="\n".join(turn["answer"]), wrong=wrong, **common)


def _read_claims(claims: Sequence[Sequence[str]], common: Mapping[str, Any]) -> CitedTurn:
    """Put claims below each other; the first two lines of a table have no citation."""
    lines = [true for true, _ in claims]
    twins: dict[int, str] = {}
    wrong: list[int] = []
    for at, (true, twin) in enumerate(claims):
        for found in _CITATION.finditer(true):
            twins[len(wrong)] = "\n".join([*lines[:at], twin, *lines[at + 1 :]])
            others = [one.number for one in common["exhibits"] if one.number != int(found["number"])]
            wrong.append(random.Random(true).choice(others))
    return CitedTurn(answer="\n".join(lines), wrong=wrong, twins=twins, **common)


def _read_exhibit(text: str, number: int, code: MirroredCode) -> PromptEvidence:
    if named := _COMMIT.fullmatch(text):
        command = ["git", "-C", str(code.mirror), "log", "-1", "--date=short", "--format=%H%n%ad, %an%n%s%n%b"]
        told = subprocess.run([*command, named["sha"]], capture_output=True, check=True).stdout.decode().rstrip()
        sha, _, message = told.partition("\n")
        place = Location(path="", start_line=0, end_line=0, commit=sha)
        return PromptEvidence(number=number, location=place, about="", text=message)
    found = _EXHIBIT.fullmatch(text)
    if found is None:
        raise ValueError(f"no exhibit: {text}")
    place = Location(path=found["path"], start_line=int(found["start"]), end_line=int(found["end"]))
    lines = code.read_text(place.path).split("\n")[place.start_line - 1 : place.end_line]
    return PromptEvidence(number=number, location=place, about=found["about"] or "", text="\n".join(lines))


class PromptFile:
    """A chat model that writes down what it is asked, and answers what somebody has answered in the file."""

    name, calls_tools = "prompts:file", False

    def __init__(self, file: Path) -> None:
        self._file = file
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        self._known = {record["prompt"]: record for record in map(json.loads, lines)}

    async def generate_structured(self, messages: Sequence[BaseMessage], form: type[Form], *, task: str) -> Form:
        """Fill in a form as the file says; `ModelUnavailable` if it says nothing yet."""
        prompt = "\n\n".join(str(message.text) for message in messages)
        record = self._known.setdefault(prompt, {"prompt": prompt, "reply": None})
        if record["reply"] is None:
            raise ModelUnavailable(f"Nobody has answered this prompt of {task} yet.")
        return form.model_validate(record["reply"])

    def save(self) -> None:
        """Write every prompt down, with its reply if it has one."""
        written = (json.dumps(record, ensure_ascii=False) for record in self._known.values())
        self._file.write_text("\n".join(written) + "\n", encoding="utf-8")


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """The fate of one citation."""

    turn: CitedTurn
    at: int
    form: str
    kind: str
    fate: str


async def check_turn(turn: CitedTurn, model: ChatModel | None = None) -> list[Outcome]:
    """Check the true citations of an answer, and the wrong ones that replace them, one at a time."""
    outcomes: list[Outcome] = []
    for form in FORMS[:1] if turn.twins else FORMS:
        true = turn.citations if form == "as written" else turn.shown
        fates = await _check(turn, turn.write(form), true, model)
        outcomes += [_make_outcome(turn, at, form, "true", fate) for at, fate in enumerate(fates)]
        for at in range(len(true)):
            written, wrong = turn.draw_wrong(at, form)
            fates = await _check(turn, turn.write(form, instead={at: written}), [wrong] * len(true), model, only=at)
            outcomes.append(_make_outcome(turn, at, form, "swapped", fates[at]))
    for at, answer in turn.twins.items():
        fates = await _check(turn, answer, turn.citations, model, only=at)
        outcomes.append(_make_outcome(turn, at, "as written", "contradicted", fates[at]))
    return outcomes


def _make_outcome(turn: CitedTurn, at: int, form: str, kind: str, fate: str) -> Outcome:
    return Outcome(turn=turn, at=at, form=form, kind=kind, fate=fate)


async def _check(
    turn: CitedTurn, answer: str, places: Sequence[Location], model: ChatModel | None, *, only: int | None = None
) -> list[str]:
    """Return what became of each citation that should lead to a place; a model reads one of them, or all in doubt."""
    parser = CitationParser(turn.exhibits, lambda text: text)
    text = "\n".join(map(parser.prose, answer.split("\n")))
    evidence = [exhibit.ref for exhibit in turn.exhibits]
    past = {one.location: one.text for one in turn.exhibits if one.location.commit}
    code = cast("CodeSearch", turn.code)
    examined = await examine_citations(text, parser.citations, evidence, code, by_model=True, past=past)
    deps = Deps(code=code, redact=lambda text: text, emit=_ignore, models=TurnModels(check=model), nonce="0" * 12)
    asked = examined if only is None else replace(examined, claims=examined.claims[only : only + 1])
    checked = examined.settle(await read_again(asked, deps))
    found = zip(checked.places, checked.doubts, places, strict=True)
    return [
        "out" if place != cited else "unverified" if doubt is Doubt.CONTRADICTED else "plain"
        for place, doubt, cited in found
    ]


def _ignore(kind: str, /, **payload: Any) -> None:
    """Nobody follows the events."""


def table(outcomes: Sequence[Outcome], before: Mapping[str, Sequence[float]]) -> str:
    """One line a kind: how many citations end how, in percent, and what the check before made of them."""
    lines = [f"{'citations':14} {'number':>6}" + "".join(f" {fate:>11} {'was':>6}" for fate in FATES)]
    for kind in KINDS:
        chosen = [each.fate for each in outcomes if each.kind == kind]
        if chosen:
            shares = [100 * chosen.count(fate) / len(chosen) for fate in FATES]
            pairs = zip(shares, before[kind], strict=True)
            cells = "".join(f" {share:9.1f} % {was:6.1f}" for share, was in pairs)
            lines.append(f"{kind:14} {len(chosen):6}{cells}")
    return "\n".join(lines)


def show_outcome(outcome: Outcome) -> str:
    """One line for a citation that was judged wrongly."""
    answer = outcome.turn.twins[outcome.at] if outcome.kind == "contradicted" else outcome.turn.answer
    found = list(_CITATION.finditer(answer))[outcome.at]
    line = answer[answer.rfind("\n", 0, found.start()) + 1 : found.end()]
    return f"{outcome.turn.repository:14} {outcome.form:10} {outcome.kind:12} {outcome.fate:10} {line[-160:]}"


async def run(arguments: argparse.Namespace) -> None:
    """Check the citations of every set and print a table for each."""
    if arguments.prompts is not None:
        file = PromptFile(arguments.prompts)
        await _measure(arguments, cast("ChatModel", file))
        file.save()
    elif arguments.check:
        async with open_models(Settings.load()) as models:
            await _measure(arguments, models.make_turn_models(Budget(UNLIMITED), _ignore).check)
    else:
        await _measure(arguments, None)


async def _measure(arguments: argparse.Namespace, model: ChatModel | None) -> None:
    for title in arguments.sets or SETS:
        turns = read_turns(arguments.answers / title if title != SETS[0] else arguments.answers, arguments.mirrors)
        outcomes = [each for turn in turns for each in await check_turn(turn, model)]
        if arguments.each and HELD_OUT not in title:
            odd = (each for each in outcomes if (each.fate == "plain") != (each.kind == "true"))
            print("\n".join(map(show_outcome, odd)))
        print(f"\n{title}\n{table(outcomes, BEFORE[title])}" if outcomes else f"{title}: nothing to measure.")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mirrors", type=Path, default=Path("../.mirror"), help="folder of clones")
    parser.add_argument("--answers", type=Path, default=ANSWERS, help="folder of answers")
    parser.add_argument("--sets", nargs="+", choices=SETS, help="measure these alone")
    parser.add_argument("--check", action="store_true", help="have doubtful citations read by the configured model")
    parser.add_argument("--prompts", type=Path, help="file of prompts to answer, and of their answers")
    parser.add_argument(
        "--each", action="store_true", help="also list what was judged wrongly, but for the held-out half"
    )
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
