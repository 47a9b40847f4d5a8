"""Greets somebody at the terminal: the index, the writing model, and questions with known answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

from agent import CodeSearch
from bot.markdown import to_one_line
from indexer import Definition, FileEntry, IndexerError, IndexStatus

_CENTRAL = 150  # definitions that are looked at
_TRIES = 6  # functions whose calls are resolved, which takes milliseconds each
_MAX_CALLS = 25  # an answer is to fit a screen
_DOCUMENTS, _LINES = 40, 400  # that headings are looked for in
_TYPES = frozenset({"class", "interface", "struct", "trait", "enum", "type"})
_FUNCTIONS = frozenset({"function", "method"})
# A heading that begins with one of these, or with its -ing form, is the answer to "how do I ...?".
_DOING = frozenset(
    """add build call change configure connect create customize debug define deploy disable enable extend handle install
    load log migrate override pass register release render return run send serve set start stop store test update
    upgrade upload use validate write""".split()
)
_DOUBLED = frozenset("log run set stop".split())
_GERUNDS = {
    f"{verb}{verb[-1]}ing" if verb in _DOUBLED else f"{verb.removesuffix('e')}ing": verb for verb in sorted(_DOING)
}
_UNDERLINES = frozenset("=-~^*\"'+")
NO_MODEL = "No language model: answers quote the code."
KEYS = "/help lists commands, Tab completes them, files and names, Alt-Enter starts a new line."
OFFER = "Ollama runs on this machine: use it with CITEBOT_MODEL=ollama:{name}."


async def suggest_questions(code: CodeSearch) -> Sequence[str]:
    """Make up to three questions with known answers: who calls something, where, and how."""
    try:
        central = [each for each in await code.list_central(limit=_CENTRAL) if _is_speaking(each.symbol.name)]
        found = [
            await anext(_ask_who_calls(code, central), ""),
            await anext(_ask_where(code, central), ""),
            await anext(_ask_how(code), "") or await anext(_ask_what_is_called(code, central), ""),
        ]
    except IndexerError:  # an index that is just being replaced; nobody asked for examples
        return ()
    return [*dict.fromkeys(filter(None, found))]


def _is_speaking(name: str) -> bool:
    """Whether a name is one that people would ask about."""
    return len(name) > 3 and not name.startswith("_") and name.isascii()


async def _ask_who_calls(code: CodeSearch, central: Sequence[Definition]) -> AsyncIterator[str]:
    """Ask about the most called of the central functions."""
    counts: dict[str, int] = {}
    async for name in _find_functions(code, central):
        calls = await code.callers(name)
        if 0 < len(calls) <= _MAX_CALLS and not any(call.ambiguous for call in calls):
            counts[name] = len(calls)
    for name in sorted(counts, key=lambda each: -counts[each]):
        yield f"who calls {name}?"


async def _ask_where(code: CodeSearch, central: Sequence[Definition]) -> AsyncIterator[str]:
    for definition in sorted(central, key=lambda each: (each.symbol.kind not in _TYPES, not each.symbol.doc)):
        if await _is_unique(code, definition.symbol.name):
            yield f"where is {definition.symbol.name} defined?"


async def _ask_what_is_called(code: CodeSearch, central: Sequence[Definition]) -> AsyncIterator[str]:
    async for name in _find_functions(code, central):
        calls = await code.callees(name)
        if any(call.callee is not None and not call.ambiguous for call in calls):
            yield f"what does {name} call?"


async def _find_functions(code: CodeSearch, central: Sequence[Definition]) -> AsyncIterator[str]:
    """Find a few functions with unambiguous names: several words, and one definition."""
    tries = 0
    for definition in central:
        name = definition.symbol.name
        is_telling = definition.symbol.kind in _FUNCTIONS and len(split_words(name)) > 1
        if is_telling and await _is_unique(code, name):
            tries += 1
            yield name
        if tries == _TRIES:
            return


def split_words(name: str) -> Sequence[str]:
    """Split a name into its words, as `parse_date` and `parseDate` write them."""
    spaced = "".join(f" {each}" if each.isupper() else each for each in name[:100])
    return spaced.replace("_", " ").split() if not name.isupper() else [name]


async def _is_unique(code: CodeSearch, name: str) -> bool:
    return len(await code.definitions(name)) == 1


async def _ask_how(code: CodeSearch) -> AsyncIterator[str]:
    """Turn headings of the documentation into questions, if a search leads straight back to them."""
    for path in _choose_documents(await code.files()):
        text = (await code.read(path, 1, _LINES)).text
        for question in filter(None, map(turn_into_question, find_headings(text))):
            hits = await code.search(question, limit=1)
            if hits and hits[0].location.path == path:
                yield question


def _choose_documents(files: Sequence[FileEntry]) -> Sequence[str]:
    """Choose the documents nearest to the top."""
    paths = (file.path for file in files if file.source_type == "doc" and file.lines > 3)
    return sorted(paths, key=lambda path: (path.count("/"), path))[:_DOCUMENTS]


def find_headings(text: str) -> Iterator[str]:
    """Find the headings of Markdown or reStructuredText, outside fenced code."""
    lines, is_code = text.split("\n"), False
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith(("```", "~~~")):
            is_code = not is_code
        title = line.strip()
        if is_code or not title or set(title) <= _UNDERLINES:
            continue
        if line.startswith("#"):
            yield title.strip("# ")
        elif len(set(following.rstrip())) == 1 and following[0] in _UNDERLINES and len(following) >= len(title):
            yield title


def turn_into_question(heading: str) -> str:
    """Turn a heading about an action into a question about how; empty for other headings."""
    words = heading[:100].removesuffix(".").split()
    if [word.lower() for word in words[:2]] == ["how", "to"]:
        words = words[2:]
    if not 2 <= len(words) <= 7 or not all(word.isascii() and word.replace("-", "").isalnum() for word in words):
        return ""
    first = words[0].lower()
    verb = _GERUNDS.get(first, first if first in _DOING else "")
    return f"how do I {' '.join([verb, *words[1:]])}?" if verb else ""


def format_banner(
    version: str, status: IndexStatus, writer: str, questions: Sequence[str], local: Sequence[str] = ()
) -> str:
    """Write the first lines; `writer` is the model that writes the answers, empty if none does.

    `local` are models on this machine that could.
    """
    branch = f" on {to_one_line(status.branch)}" if status.branch else ""
    size = f"{status.files:,} file{'s' * (status.files != 1)}"
    lines = [
        f"citebot {version}: {to_one_line(status.repository)} at {(status.commit or '')[:7]}{branch}, {size}.",
        f"{to_one_line(writer)} writes the answers." if writer else NO_MODEL,
        *(OFFER.format(name=to_one_line(name)) for name in local[:1] if not writer),
        *(["Ask, for example:"] if questions else []),
        *(f"  {to_one_line(question)}" for question in questions),
        KEYS,
    ]
    return "\n".join(lines)
