"""The evidence of an answer: the lines that it cites, and the lookups that it rests on where it is a "no" or a list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from agent import FRAME, Answer, CodeSearch, StoredQuery, find_claimed_numbers, find_names, store_queries
from agent.text.citation_markers import find_markers
from bot.storage.living_answers import AnswerEvidence, CitedPlace
from indexer import IndexerError

if TYPE_CHECKING:
    from bot.ports import Repositories


async def collect_evidence(
    answer: Answer, requests: Sequence[Any], repositories: Repositories
) -> AnswerEvidence | None:
    """Collect the evidence of an answer from the requests of its router; None if it has none.

    Lines of other commits never change. If a repository has moved on meanwhile, the result of a lookup is unknown.
    """
    if FRAME in answer.text:  # it points at places that match, and claims nothing of them
        return None
    commits = answer.read_at
    places = tuple(_list_places(answer))
    queries: dict[str, Sequence[StoredQuery]] = {}
    for name, commit in commits.items():
        own = [one for one in requests if one.get("repository", name) == name]
        code = await _hold(repositories, name, commit) if own else None
        if found := await store_queries(code, own) if code is not None else ():
            queries[name] = found
    return AnswerEvidence(commits=commits, places=places, queries=queries) if places or queries else None


def _list_places(answer: Answer) -> Iterable[CitedPlace]:
    words: dict[int, frozenset[str]] = {}
    for marker in find_markers(answer.text):
        said = find_names(marker.sentence) | find_claimed_numbers(marker.sentence)
        words[marker.number] = words.get(marker.number, frozenset()) | said
    for citation in answer.citations:
        if citation.path and not citation.is_elsewhere:
            yield CitedPlace(
                mark=citation.mark,
                repository=citation.repository or answer.repository,
                commit=citation.commit,
                path=citation.path,
                start_line=citation.start_line,
                end_line=citation.end_line,
                words=words.get(citation.mark, frozenset()),
            )


async def _hold(repositories: Repositories, name: str, commit: str) -> CodeSearch | None:
    try:
        code = await repositories.pin_existing(name)
    except IndexerError:
        return None
    return code if code.commit.sha == commit else None
