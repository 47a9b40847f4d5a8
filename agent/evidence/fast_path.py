"""Turns a question that names its target into exact requests, without a model; else into one broad search."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent.evidence.paths import FileNames
from agent.evidence.requests import decision, look_up, open_file, open_lines, search_for
from agent.ports import CodeSearch
from agent.questions.forms import NamedQuestion, read_form
from agent.questions.mentions import Mentions, find_mentions
from agent.questions.terms import content_terms
from agent.questions.traceback import error_name, read_frames
from agent.state import RetrievalRequest, RouterDecision

MAX_FRAMES_SHOWN = 3
MAX_LINES = 80

_OVERVIEW = re.compile(
    r"(?:what(?:'s|’s|\s+is|\s+does)|describe|explain|summari[sz]e|tell\s+me\s+about|(?:give\s+me\s+)?an?\s+(?:overview|summary)\s+of)"
    r"\s+(?:this|the|our)\s+(?:whole\s+|entire\s+)?(?:project|repo(?:sitory)?|code\s?base|library|package|app(?:lication)?|code)"
    r"(?:\s+(?:about|do|for|all\s+about))?[\s?.!]*",
    re.IGNORECASE,
)


async def decide(question: str, code: CodeSearch) -> RouterDecision:
    """Choose the requests for a question; at most a few index lookups, never a search."""
    for attempt in (_from_trace, _from_paths, _from_form, _from_names):
        chosen = await attempt(question, code)
        if chosen is not None:
            return chosen
    return _broad(question)


async def _from_trace(question: str, code: CodeSearch) -> RouterDecision | None:
    frames = read_frames(question)
    if not frames:
        return None
    names = FileNames(await code.files())
    known = [(entry, frame.line) for frame in frames if (entry := names.find(frame.path)) is not None]
    places = list(dict.fromkeys((entry.path, min(line, entry.lines)) for entry, line in known))[:MAX_FRAMES_SHOWN]
    requests = [open_lines(path, line, line, reasoning="a frame of the stack trace") for path, line in places]
    if (error := error_name(question)) and await code.definitions(error):
        requests.append(look_up("definition", error, reasoning="the error of the stack trace"))
    return decision(requests, fast_path=True, reasoning="a pasted stack trace") if requests else None


async def _from_paths(question: str, code: CodeSearch) -> RouterDecision | None:
    mentioned = find_mentions(question).paths
    if not mentioned:
        return None
    names = FileNames(await code.files())
    known = [(entry, mention) for mention in mentioned if (entry := names.find(mention.path)) is not None]
    lines = [
        open_lines(
            entry.path,
            min(mention.start_line, entry.lines),
            min(max(mention.end_line, mention.start_line), mention.start_line + MAX_LINES, entry.lines),
            reasoning="lines that the question names",
        )
        for entry, mention in known
        if mention.start_line
    ]
    if lines:
        return decision(lines, fast_path=True, reasoning="lines by number")
    paths = [entry.path for entry, _ in known]
    return await _about_files(question, paths, code) if paths else None


async def _about_files(question: str, paths: Sequence[str], code: CodeSearch) -> RouterDecision:
    """Outline the files when the question asks nothing else, otherwise search within them."""
    rest = content_terms(question) - content_terms(" ".join(paths)) - content_terms("contain show outline define open")
    if not rest:
        return decision(
            [open_file(path, reasoning="a file that the question names") for path in paths[:2]],
            fast_path=True,
            reasoning="a file by name",
        )
    within = [search_for(question, patterns=[f"/{path}" for path in paths], reasoning="within the files named")]
    definitions, _ = await _definitions(find_mentions(question), code)
    return decision([*definitions, *within], fast_path=True, reasoning="a question about a file")


async def _from_form(question: str, code: CodeSearch) -> RouterDecision | None:
    asked = read_form(question)
    if asked is None or _OVERVIEW.fullmatch(question):
        return None
    name = await _known_name(asked.name, code)
    if name is None:
        return _of_unknown(question, asked)
    exact = look_up(asked.lookup, name, reasoning=f"the question asks for {asked.lookup} of a name")
    return decision([exact], fast_path=True, reasoning="a question about one name")


def _of_unknown(question: str, asked: NamedQuestion) -> RouterDecision | None:
    if not find_mentions(f"`{asked.name}`").names or (asked.name.islower() and "_" not in asked.name):
        return None
    if find_mentions(question).codes:
        return None
    requests: list[RetrievalRequest] = []
    if asked.lookup == "usages":
        requests.append(look_up("usages", asked.name, reasoning="the name may be used without being defined here"))
    requests.append(search_for(asked.name, reasoning="the name is not defined here"))
    return decision(requests, fast_path=False, reasoning="a name that is not defined", unknown=[asked.name])


async def _from_names(question: str, code: CodeSearch) -> RouterDecision | None:
    mentions = find_mentions(question)
    requests, unknown = await _definitions(mentions, code)
    codes = [search_for(value, reasoning="a code that the question quotes") for value in mentions.codes]
    if not requests and not codes and not unknown:
        return None
    if content_terms(question) - content_terms(" ".join((*mentions.names, *mentions.words, *mentions.codes))):
        requests.append(search_for(question, reasoning="what the question says around the names"))
    elif unknown and not requests:
        requests.append(search_for(" ".join(unknown), reasoning="the names are not defined here"))
    return decision(
        [*codes, *requests],
        fast_path=len(requests) > len(unknown) or bool(codes),
        unknown=unknown,
        reasoning="names in the question",
    )


async def _definitions(mentions: Mentions, code: CodeSearch) -> tuple[list[RetrievalRequest], list[str]]:
    """Return lookups for the names that are defined, and the names that look like code and are not."""
    known: list[str] = []
    unknown: list[str] = []
    for written in (*mentions.names, *mentions.words):
        name = await _known_name(written, code)
        if name is not None and (written in mentions.names or await _is_exact(written, code)):
            known.append(name)
        elif written in mentions.names:
            unknown.append(written)
    requests = [look_up("definition", name, reasoning="a name in the question") for name in dict.fromkeys(known)]
    return requests, unknown


async def _is_exact(word: str, code: CodeSearch) -> bool:
    """Whether a capitalised word of the question is a definition's name and not only spelt like one."""
    return any(definition.symbol.name == word for definition in await code.definitions(word))


async def _known_name(written: str, code: CodeSearch) -> str | None:
    """Return the name as the index has it: as written, or without its leading modules."""
    if await code.definitions(written):
        return written
    parts = written.split(".")
    for cut in range(1, len(parts)):
        shorter = ".".join(parts[cut:])
        definitions = await code.definitions(shorter)
        module = parts[cut - 1].lower()
        if any(module in definition.path.lower().replace(".", "/").split("/") for definition in definitions):
            return shorter
    return None


def _broad(question: str) -> RouterDecision:
    if _OVERVIEW.fullmatch(question):
        readme = search_for(
            "overview introduction", patterns=["README*"], source_types=["doc"], reasoning="what the project is"
        )
        return decision([readme], fast_path=False, reasoning="a question about the whole repository")
    return decision(
        [search_for(question, reasoning="the question as it is")], fast_path=False, reasoning="no name to go by"
    )
