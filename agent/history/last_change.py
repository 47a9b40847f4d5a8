"""Finds the commit that tells why code is as it is: the one whose message says most of what a question asks."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

from agent.evidence.refs import is_test_or_docs
from agent.history.commit_refs import make_commit_ref
from agent.ports import CodeSearch
from agent.questions.terms import find_content_terms, match_terms
from agent.state import EvidenceRef, to_location
from indexer.text.linear_patterns import compile_pattern
from indexer.types import LogQuery, Revision

MAX_FILES = 3  # whose commits are read
MAX_COMMITS = 400  # of a file
MAX_TELLING = 3
_NEARLY = 0.6  # of the weight of the best, for another one to be named beside it
_LEAST_SHARE = 0.35  # of the weight of the question's words that a message has to say, to be about the same
_LEAST_WORDS = 2
_BODY_SHARE = 0.7  # what a word is worth that stands in the body and not in the subject
_ASKS_WHY = compile_pattern(
    r"(?i)^\W{0,3}(?:(?:and|so|but|ok|hey)\W{1,2})?(?:why|how come|since when|for what reason"
    r"|what(?:'s|’s| is| was) the (?:reason|rationale|motivation|point)|warum|wieso|weshalb|seit wann|wozu|pourquoi"
    r"|depuis quand|desde cuándo)\b|por qué|なぜ|どうして|为什么"
)


def asks_for_reason(question: str) -> bool:
    """Whether a question asks why something is so, or since when."""
    return _ASKS_WHY.search(question[:400]) is not None


async def find_telling_commits(code: CodeSearch, refs: Sequence[EvidenceRef], question: str) -> list[EvidenceRef]:
    """Find the commits that say most of the question, else the newest that wrote the first place that was found.

    The latter only changed it, which may be for another reason, and is `ambiguous`.
    """
    places = [ref for ref in refs if ref["path"] and ref["role"] != "commit"]
    places = sorted(places, key=lambda ref: is_test_or_docs(ref["path"]))
    if not places:
        return []
    paths = list(dict.fromkeys(ref["path"] for ref in places))[:MAX_FILES]
    logs = await asyncio.gather(*(code.past.log(LogQuery(path=path, limit=MAX_COMMITS)) for path in paths))
    commits = {one.sha: one for log in logs for one in log.revisions}
    telling = _choose_telling(list(commits.values()), find_content_terms(question))
    if telling:
        return [make_commit_ref(one) for one in telling]
    origins = await code.past.origins(to_location(places[0]))
    newest = sorted((one.revision for one in origins), key=lambda one: -one.committed_at)
    return [{**make_commit_ref(one), "ambiguous": True} for one in newest[:1]]


def _choose_telling(commits: Sequence[Revision], terms: frozenset[str]) -> list[Revision]:
    """Choose the commits whose messages say most of the words, the rare ones above all; none where none says enough."""
    said = [(match_terms(one.subject, terms), match_terms(one.body, terms)) for one in commits]
    weights = {
        term: math.log(1 + len(commits) / (1 + sum(term in subject or term in body for subject, body in said)))
        for term in terms
    }
    found: list[tuple[float, Revision]] = []
    for one, (subject, body) in zip(commits, said, strict=True):
        worth = sum(weights[term] * (1.0 if term in subject else _BODY_SHARE) for term in subject | body)
        if len(subject | body) >= min(_LEAST_WORDS, len(terms)) and worth > _LEAST_SHARE * sum(weights.values()):
            found.append((worth, one))
    found.sort(key=lambda each: (-each[0], -each[1].committed_at))
    return [one for worth, one in found[:MAX_TELLING] if worth >= _NEARLY * found[0][0]]
