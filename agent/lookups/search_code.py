"""Search in the whole repository by meaning and by words."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AliasChoices, Field

from agent.evidence.coverage import deny
from agent.evidence.refs import make_hit_ref
from agent.evidence.search import search_in_any_mode
from agent.lookups.lookup import Arguments, CodeLookup, Look, Offset
from agent.lookups.results import CodeResult, FoundCode, number_lines
from agent.lookups.tool import SEARCH
from agent.prompts.evidence_lines import find_core
from agent.questions.terms import find_content_terms, match_terms
from indexer.errors import IndexerError
from indexer.types import Filters, Hit

MAX_HITS = 50
_WIDE_CHARS = 2_400  # of a hit that a program is shown, around the words of the query
_BEST_CHARS = 900  # of the best hit that a model is shown
_HIT_CHARS = 400  # of each other

Word = Annotated[str, Field(min_length=1, max_length=200)]
Words = Annotated[tuple[Word, ...], Field(max_length=20)]


class SearchArguments(Arguments):
    """A text to search for, and where."""

    query: Annotated[
        str,
        Field(
            min_length=1,
            max_length=1_000,
            validation_alias=AliasChoices("query", "q"),
            description="The subject of the code: words or names.",
        ),
    ]
    languages: Annotated[Words, Field(description="Only these languages, such as python.")] = ()
    kinds: Annotated[tuple[Literal["code", "test", "doc", "config"], ...], Field(max_length=4)] = ()
    folders: Annotated[Words, Field(description="Only below these folders.")] = ()
    globs: Annotated[Words, Field(description="Only paths that match, as in .gitignore: **/*.sql.")] = ()
    limit: Annotated[int, Field(ge=1, le=MAX_HITS, validation_alias=AliasChoices("limit", "n_results"))] = 8
    offset: Offset = 0


class SearchCode(CodeLookup[SearchArguments, CodeResult]):
    """Ranks the code by a text; the first fifty places are available."""

    name = "search_code"
    known_as = {"model": "search_codebase", "api": "search", "operation": "search"}  # noqa: RUF012
    title = "Search code"
    description = (
        "Search code, tests and documents by meaning and by words; the best places first, with their text. "
        "Use it when you do not know the exact name or text."
    )
    arguments = SearchArguments
    result = CodeResult
    label = "Searching"
    argument_shown = "query"
    cost = SEARCH

    async def find(self, args: SearchArguments, look: Look) -> CodeResult:
        """Search in the mode that works, best hits first."""
        filters = Filters(
            languages=tuple(language.lower() for language in args.languages),
            source_types=args.kinds,
            folders=args.folders,
            patterns=args.globs,
        )
        wanted = min(args.offset + args.limit + 1, MAX_HITS)
        aim: Literal["places", "passages"] = "places" if look.is_wide else "passages"
        hits, failures = await search_in_any_mode(look.code, args.query, filters, wanted, aim)
        if failures and not hits:
            raise IndexerError(failures[0])
        if not hits:
            no = await deny(look.code, "No match was found", quote=str)
            look.deny(no, " Try other words, or grep for an exact text.")
        look.head["is_total_exact"] = len(hits) < wanted
        found = [
            _show_hit(look, hit, args.query, number)
            for number, hit in enumerate(look.take_page(hits, args.limit, args.offset))
        ]
        for failure in failures:
            look.note(f"Part of the search failed: {failure}")
        return CodeResult(**look.head, hits=tuple(found))


def _show_hit(look: Look, hit: Hit, query: str, number: int) -> FoundCode:
    """Show the lines of a hit with most words of the search."""
    ref, lines = make_hit_ref(hit), look.mask(hit.text).split("\n")
    terms = find_content_terms(query)
    most = _WIDE_CHARS if look.is_wide else _HIT_CHARS if number else _BEST_CHARS
    start, end = find_core(lines, [match_terms(line, terms) for line in lines], most)
    whole = f"from lines {ref['start_line']}-{ref['end_line']}" if end - start < len(lines) else ""
    first, text = hit.location.start_line + start, "\n".join(lines[start:end])
    ref["start_line"], ref["end_line"] = first, first + end - start - 1
    look.show(ref, text, about=", ".join(filter(None, [hit.scope, whole])))
    return FoundCode(
        path=hit.location.path,
        first_line=hit.location.start_line,
        last_line=hit.location.end_line,
        symbol=hit.symbols[0].qualified_name if hit.symbols else hit.scope,
        language=hit.language,
        kind=hit.source_type,
        score=round(hit.score, 4),
        code=number_lines(text, first),
        url=look.code.permalink(hit.location),
    )
