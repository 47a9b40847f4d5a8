"""Answers what a repository is as a whole: what its README says, its size, where it starts, and its folders."""

from __future__ import annotations

from collections.abc import Sequence

from agent.answers.answer_parts import AnswerBuilder, AnswerContext, AnswerSubject, strip_doc_markup
from agent.answers.places import write_places
from agent.evidence.intent_router import STARTING
from agent.questions.mentions import find_mentions
from agent.text.escaping import format_code_span, format_count, format_quote
from indexer.types import Location, RepositoryOverview

_PLAIN = "text"  # what has no language that is parsed
_LONGEST_QUOTE = 320
_MOST_LANGUAGES = 3
_MOST_FILES = 4
_MOST_FOLDERS = 8
_MOST_INNER = 5


async def write_overview(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write what is known of the repository as a whole; point at places where the question names a part of it."""
    if material.skip or find_mentions(material.question).anything:
        return await write_places(draft, material)
    code = material.deps.code
    facts = await code.overview()
    starts = _list_files(draft, "It starts in", [(path, "") for path in facts.starts[:_MOST_FILES]])
    if material.terms & STARTING and starts:
        draft.say(starts.pop().removeprefix("- "))
    for passage in facts.introduction[:1]:
        text = format_quote(strip_doc_markup(" ".join(passage.text.split())), longest=_LONGEST_QUOTE)
        draft.say(f"{text} ({format_code_span(passage.location.path)} {draft.cite_read(passage.location)})")
    languages = [f"{count:,} of {language}" for language, count in facts.languages if language != _PLAIN]
    size = f"{format_count(facts.files, 'file')} with {format_count(facts.lines, 'line')}"
    draft.say(f"{': '.join(filter(None, [size, ', '.join(languages[:_MOST_LANGUAGES])]))}.")
    files = [one for one in await code.files() if "/" not in one.path and one.path not in facts.starts]
    own = [one for one in files if one.language != _PLAIN and one.source_type == "code"]
    top = sorted(own, key=lambda one: -one.lines)[:_MOST_FILES]
    items = [
        *starts,
        *_list_files(draft, "At the top", [(one.path, f" ({format_count(one.lines, 'line')})") for one in top]),
        *_list_folders(facts),
    ]
    if items:
        draft.say("\n".join(items))
    return AnswerSubject()


def _list_files(draft: AnswerBuilder, title: str, files: Sequence[tuple[str, str]]) -> list[str]:
    named = ", ".join(
        f"{format_code_span(path)} {draft.cite_read(Location(path=path, start_line=1, end_line=1))}{more}"
        for path, more in files
    )
    return [f"- {title}: {named}"] if named else []


def _list_folders(facts: RepositoryOverview) -> list[str]:
    """List the folders at the top, those with the most files first, each with the largest in it."""
    by_size = sorted(facts.folders, key=lambda one: -one[1])
    top = [(path, count) for path, count in by_size if "/" not in path]
    items = []
    for path, count in top[:_MOST_FOLDERS]:
        inner = [format_code_span(each.partition("/")[2] + "/") for each, _ in by_size if each.startswith(f"{path}/")]
        more = f" and {len(inner) - _MOST_INNER} more" if len(inner) > _MOST_INNER else ""
        inside = f", with {', '.join(inner[:_MOST_INNER])}{more}" if inner else ""
        items.append(f"- {format_code_span(path + '/')}: {format_count(count, 'file')}{inside}")
    rest = len(top) - _MOST_FOLDERS
    return [*items, f"- and {format_count(rest, 'more folder')}"] if rest > 0 else items
