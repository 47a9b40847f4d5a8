"""Finds how one more of something is added: what explains it, the newest one there is, and where that is registered."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from agent.evidence.lookups import search
from agent.evidence.refs import is_test_or_docs, make_lines_ref
from agent.evidence.relaxed_search import search_relaxed
from agent.evidence.retrieved import Retrieved
from agent.kinds.explanations import choose_explanation
from agent.ports import CodeSearch
from agent.questions.terms import split_words, stem_word
from agent.state import EvidenceRef, RetrievalRequest
from indexer.errors import IndexerError
from indexer.types import FileEntry, Location, LogQuery

log = logging.getLogger(__name__)

MAX_DATED = 32  # members whose first commit is looked up
MAX_NAMED = 8  # members that a file is to name to be the one that registers them
MAX_PLACES = 3
_DOCUMENTS = 8
_LEAST_KINDRED = 3  # members of a family, to which one more can be added
_LONGEST_HISTORY = 200
_MOST_LINES = 200
# Names of what holds a family together, and of what is everywhere.
_GENERIC = frozenset(
    "__init__ index mod main lib base init utils util types common core helpers registry manager loader factory".split()
)
# What comes after the noun of what is to be added: "a rule for a website".
_AFTER_NOUN = re.compile(r"\b(?:for|in|to|of|on|with|from|that|which|using|written|and)\b", re.IGNORECASE)


async def fetch_example(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """Return the documentation, the newest of a family of files that is named so, and the lines that register it."""
    of_docs: RetrievalRequest = {**request, "source_types": ["doc"]}
    found, documents = await asyncio.gather(search(code, request), search_relaxed(code, of_docs, limit=_DOCUMENTS))
    target = request.get("parts", {}).get("target", request["query"])
    files = await code.files()
    noun = read_noun(target)
    family = find_family(files, noun)
    newest = await _choose_newest(code, family)
    code_files = {entry.path for entry in files if entry.source_type == "code" and "migrations/" not in entry.path}
    named = await _find_registrations(code, newest, family, code_files) if newest else []
    example = [_refer_to_member(newest, files), *named] if newest else []
    explained = await choose_explanation(code, documents.hits, request["query"], about=noun if family else frozenset())
    return Retrieved(
        refs=[*explained, *example, *found.refs],
        around=found.around,
        totals={**found.totals, "examples": len(family), "dated": min(len(family), MAX_DATED)},
        relaxed=found.relaxed,
        failures=found.failures,
    )


def read_noun(target: str) -> frozenset[str]:
    """Return the stem of the noun that a target ends in, and that of its last two words as one."""
    words = split_words(_AFTER_NOUN.split(target, maxsplit=1)[0])[-2:]
    return frozenset(stem_word(word) for word in (*words[-1:], "".join(words)))


def find_family(files: Sequence[FileEntry], terms: frozenset[str]) -> list[str]:
    """Return the files or folders side by side in the folder that is named like what is to be added; else none."""
    members: dict[str, set[str]] = defaultdict(set)
    for entry in files:
        parts = PurePosixPath(entry.path).parts
        if entry.source_type != "code" or is_test_or_docs(entry.path):
            continue
        for at, folder in enumerate(parts[:-1]):
            stem = PurePosixPath(parts[at + 1]).stem.lower()
            is_hub = stem_word(stem) == stem_word(
                folder.lower()
            )  # what holds the family together is often named like it
            if stem_word(folder.lower()) in terms and stem not in _GENERIC and not is_hub:
                members["/".join(parts[: at + 1])].add(parts[at + 1])
    largest = max(members, key=lambda folder: len(members[folder]), default="")
    names = sorted(members[largest]) if largest else []
    return [f"{largest}/{name}" for name in names] if len(names) >= _LEAST_KINDRED else []


async def _choose_newest(code: CodeSearch, family: Sequence[str]) -> str:
    """Return the member whose first commit is newest; the last by name where the history is not known."""
    dated: list[tuple[int, str]] = []
    for path in family[:MAX_DATED]:
        try:
            found = await code.past.log(LogQuery(path=path, limit=_LONGEST_HISTORY))
        except IndexerError as error:
            log.warning("the newest of %d examples is not known: %s", len(family), error)
            return family[-1]
        dated.append((found.revisions[-1].committed_at if found.revisions else 0, path))
    return max(dated, default=(0, ""))[1]


def _refer_to_member(member: str, files: Sequence[FileEntry]) -> EvidenceRef:
    """Refer to the largest file of a member, which does most of its work."""
    inside = [entry for entry in files if f"{entry.path}/".startswith(f"{member}/")]
    largest = max(inside, key=lambda entry: (entry.source_type == "code", entry.lines))
    lines = Location(path=largest.path, start_line=1, end_line=max(1, largest.lines))
    ref = make_lines_ref(lines, "entry", language=largest.language)
    ref["symbol"], ref["kind"] = member, "example"
    return ref


async def _find_registrations(
    code: CodeSearch, member: str, family: Sequence[str], among: Collection[str]
) -> list[EvidenceRef]:
    """Refer to the lines that name the member in the files that name most of its family."""
    names = [PurePosixPath(path).stem for path in {member, *family[-MAX_NAMED:]}]
    matches = await code.grep(rf"(?i)(?:\b|_)(?:{'|'.join(map(re.escape, names))})", limit=_MOST_LINES)
    own = PurePosixPath(member)
    outside = [
        match
        for match in matches.lines
        if match.location.path in among and not f"{match.location.path}/".startswith(f"{own}/")
    ]
    named = Counter(match.location.path for match in outside)
    last = own.stem.lower()
    lines = [match for match in outside if last in match.text.lower()]
    first: dict[str, EvidenceRef] = {}
    for match in sorted(lines, key=lambda match: -named[match.location.path]):
        ref = make_lines_ref(match.location, "entry")
        ref["symbol"], ref["kind"], ref["signature"] = own.stem, "registration", match.text.strip()[:160]
        first.setdefault(match.location.path, ref)
    return list(first.values())[:MAX_PLACES]
