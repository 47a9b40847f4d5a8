"""Turns a question that names its target into exact requests, without a model; any other into one broad search."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace

from agent.evidence.coverage import find_left_out
from agent.evidence.definitions import find_known_name, is_defined_exactly
from agent.evidence.intent_router import (
    MAX_ALIKE,
    AskedIntent,
    asks_for_dependencies,
    choose_files,
    list_meanings,
    recognise_intent,
    request_name,
    route_comparison,
    route_intent,
)
from agent.evidence.path_lookup import FilePathLookup, find_folder
from agent.evidence.refs import is_import_line, is_test_or_docs
from agent.evidence.requests import (
    NONE_OF,
    NOT_INDEXED,
    decide_retrieval,
    request_kind,
    request_lines,
    request_lookup,
    request_outline,
    request_search,
)
from agent.evidence.search import find_said
from agent.ports import CodeSearch, SymbolIndex
from agent.questions.intent import clean_question
from agent.questions.intents.model import SURE, load_model
from agent.questions.literals import find_literals, make_literal_query
from agent.questions.mentions import (
    Mentions,
    PathMention,
    find_linked_lines,
    find_mentions,
    refer_to_project,
    replace_links,
)
from agent.questions.pasted_errors import parse_pasted_error
from agent.questions.scopes import LanguageFilter, parse_language_filter
from agent.questions.stack_traces import StackFrame, parse_error_message, parse_error_name, parse_frames
from agent.questions.terms import find_content_terms
from agent.state import RetrievalRequest, RouterDecision
from indexer.text.linear_patterns import compile_pattern
from indexer.types import FileEntry

_LONGEST = 300
_ENVIRONMENT = r"(?:the )?(?:production|prod|staging|preprod(?:uction)?|canary|live)"
_RELEASE = r"(?:the |a |any |our )?(?:latest |newest |last |current )?(?:release|version|tag)"
_PLACE = f"(?:{_ENVIRONMENT}|{_RELEASE})"
_SOMEWHERE = rf"(?: (?:in|on|to|with) {_PLACE})?"
_STATE = r"(?:released|deployed|shipped|rolled out|live|out|fixed)"
_WHEN = r"(?: yet| already| right now| now| today| currently)*"
# Whole questions: "in production code" is no environment.
_OF_RELEASE = r"(?:in |since |with |from )?(?:which|what) (?:releases?|versions?|tags?)"
_FORMS = (
    rf"(?:is|are|was|were|has|have|did|does) (?P<what>.+?)(?: been)?{_WHEN} {_STATE}{_SOMEWHERE}{_WHEN}",
    rf"(?:is|are|was|were) (?P<what>.+?){_WHEN} (?:running )?(?:in|on|part of) {_PLACE}{_WHEN}",
    rf"(?:does|do) {_PLACE} (?:have|run|contain|include) (?P<what>.+?){_WHEN}",
    rf"{_OF_RELEASE} (?:first )?(?:has|have|had|contains?|includes?|ships?|shipped|got) (?P<what>.+?)",
    rf"{_OF_RELEASE} (?:is|are|was|were) (?P<what>.+?) (?:{_STATE}|in|part of|included|contained)",
)
_SHIPPED = tuple(compile_pattern(f"(?i){form}[?.! ]*") for form in _FORMS)
_RUNNING = compile_pattern(
    rf"(?i)(?:what|which)(?:'s| (?:version|commit|release|tag|code))?(?: (?:is|are|runs?|do we run)){{0,2}}"
    rf"(?: (?:running|deployed|live))? (?:in|on|to) {_ENVIRONMENT}{_WHEN}[?.! ]*"
    rf"|(?:is|how far is) {_ENVIRONMENT} (?:up to date|up-to-date|current|behind){_WHEN}[?.! ]*"
)
_COMMIT = compile_pattern(r"(?i)(?:the )?(?:commit )?`?(?P<commit>[0-9a-f]{7,40})`?")
_CHANGE = r"(?:bug ?fix|fix|change|commit|patch|pr|pull request|merge)"
_FIX_BEFORE = compile_pattern(rf"(?i)(?:the |our |my )?{_CHANGE}(?: (?:of|for|to|in|that|with|on|which))+ (?P<rest>.+)")
_FIX_BEHIND = compile_pattern(rf"(?i)(?:the |our |my )?(?P<rest>.+?) {_CHANGE}")
_FIXED = compile_pattern(r"(?i).*\bfixed\b.*")


def read_asked_release(question: str) -> Mapping[str, str] | None:
    """Return the subject of a question about releases or environments, by kind; None for any other question.

    A `commit` is a hash, a `change` the words of one, a `name` may be anything in the code; without them, the question
    is about the environments.
    """
    text = " ".join(question.split())
    if len(text) > _LONGEST:
        return None
    if _RUNNING.fullmatch(text):
        return {"running": "yes"}
    found = next((one for form in _SHIPPED if (one := form.fullmatch(text)) is not None), None)
    if found is None:
        return None
    what = found["what"].strip(" `'\"")
    if commit := _COMMIT.fullmatch(what):
        return {"commit": commit["commit"].lower()}
    change = _FIX_BEFORE.fullmatch(what) or _FIX_BEHIND.fullmatch(what)
    if change is not None or _FIXED.fullmatch(text):
        return {"change": change["rest"] if change is not None else what}
    return {"name": what}


MAX_FRAMES_SHOWN = 3
FUNCTION_HEAD = 14
_MIN_WORDS = 3  # of a message; a shorter one stands everywhere
_SAME_LINE = 0.8  # how much of a line in a trace must be alike to be the same line in another version
MAX_LINES = 80
_MAX_WORDS_AROUND = 1  # besides a capitalised word; more of them mean another subject
_MAX_ACRONYM = 5


async def route_trace(question: str, code: CodeSearch) -> RouterDecision | None:
    """Show the code of a stack trace's frames, its error, and the place of its message."""
    frames = parse_frames(question)
    if not frames:
        return None
    names = FilePathLookup(await code.files(), (frame.path for frame in frames))
    known = [(entry, frame) for frame in frames if (entry := names.find(frame.path)) is not None]
    requests: dict[tuple[str, int], RetrievalRequest] = {}
    for entry, frame in known[: 2 * MAX_FRAMES_SHOWN]:
        request = await _request_frame(entry, frame, code)
        requests.setdefault((request["path"], request["start_line"]), request)
    chosen = list(requests.values())[:MAX_FRAMES_SHOWN]
    if chosen and (error := parse_error_name(question)) and await code.definitions(error):
        chosen.append(request_lookup("definition", error, reasoning="the error of the stack trace"))
    if message := parse_error_message(question):
        chosen.append(request_lookup("message", message, reasoning="what the error says"))
    return decide_retrieval(chosen, fast_path=bool(known), reasoning="a pasted stack trace") if chosen else None


async def _request_frame(entry: FileEntry, frame: StackFrame, code: CodeSearch) -> RetrievalRequest:
    """Request the line of a frame; if the trace is from another version, request the named function."""
    line = max(1, min(frame.line, entry.lines))
    found = [one for one in await code.definitions(frame.function) if one.path == entry.path] if frame.function else []
    spans = [(one.symbol.start_line, one.symbol.end_line) for one in found]
    if not spans:
        return request_lines(entry.path, line, line, reasoning="a frame of the stack trace")
    start, end = min(spans, key=lambda span: (not span[0] <= line <= span[1], abs(span[0] - line)))
    moved = await _find_moved_line(frame.source, entry.path, start, end, code) if frame.source else None
    if moved is not None or start <= line <= end:
        note = "" if moved in {None, frame.line} else f"the trace says line {frame.line}, of another version"
        at = moved or line
        return request_lines(entry.path, at, at, reasoning=note or "a frame of the stack trace")
    end = min(end, start + FUNCTION_HEAD - 1)
    return request_lines(entry.path, start, end, reasoning=f"the trace says line {frame.line}, of another version")


async def _find_moved_line(source: str, path: str, start: int, end: int, code: CodeSearch) -> int | None:
    """Find the line of the function that reads most like the one in the trace."""
    lines = [line.strip() for line in (await code.read(path, start, end)).text.split("\n")]
    close = difflib.get_close_matches(source, lines, n=1, cutoff=_SAME_LINE)
    return start + lines.index(close[0]) if close else None


async def route_error(question: str, code: CodeSearch) -> RouterDecision | None:
    """Look for the place with the message of an error, or for its exception where no place has that."""
    error = parse_pasted_error(question)
    if error is None or (error.name and not error.texts and await code.definitions(error.name)):
        return None
    if (
        not error.is_evident
        and (wanted := load_model().rank(question)[0]).name == "value"
        and wanted.confidence >= SURE
    ):
        return None  # "max item size"
    said = await find_said(code, error.texts, is_evident=error.is_evident)
    if not said and not error.is_evident:
        return None
    message = said or next(iter(error.texts), "")
    if not said and error.name and (known := await find_known_name(error.name, code)) is not None:
        request = request_name("definition", known)
    elif said or len(message.split()) >= _MIN_WORDS or not error.name:
        request = request_lookup("message", message, reasoning="what the error says")
    else:
        request = request_search(f"{error.last_name} {message}", reasoning="the exception by its name")
    return decide_retrieval([request], fast_path=False, reasoning="a pasted error")


async def route_by_rules(question: str, code: CodeSearch) -> RouterDecision:
    """Choose the requests for a question; at most a few index lookups, never a search."""
    written = unicodedata.normalize("NFC", question)
    question = replace_links(written)
    asked = parse_language_filter(question)
    if asked is not None:
        return await _route_in_language(asked, code)
    for attempt in (route_trace, route_error, _route_left_out, _route_release, route_comparison):
        chosen = await attempt(question, code)
        if chosen is not None:
            return chosen
    about = await _refer_to_project(question, code)
    intent = await recognise_intent(about, code)
    is_of_past = intent.is_sure and intent.name in {"people", "origin", "changes", "reason"}
    chosen = None if is_of_past else _route_linked(written) or await _route_lines(question, code)
    if chosen is not None:
        return chosen
    if intent.name == "contents" and (chosen := await route_intent(about, intent, code)) is not None:
        return chosen
    return await _route_message(question, intent, code) or await _route_rest(about, intent, code)


async def _route_release(question: str, code: CodeSearch) -> RouterDecision | None:
    """Find the commits for a question about releases or environments; None if nothing names them."""
    asked = read_asked_release(clean_question(question))
    if asked is None:
        return None
    if name := asked.get("name"):  # "is debugging on in production?" asks about a value, and not about a change
        mentioned = find_mentions(name)
        if not (mentioned.paths or await is_defined_exactly(name.removesuffix("()"), code)):
            return None
    parts = {f"shipped {kind}": said for kind, said in asked.items()}
    return decide_retrieval([request_kind("changes", question, parts)], fast_path=True, reasoning="what is released")


async def _route_message(question: str, asked: AskedIntent, code: CodeSearch) -> RouterDecision | None:
    """Search for a message that the question consists of or quotes, unless it clearly asks about a name."""
    names_code = bool(asked.names or find_mentions(question).paths)
    is_named = asked.is_sure and names_code and asked.name != "error"
    said = not is_named and any(literal.is_message for literal in find_literals(question))
    return await _route_literals(question, code) if said else None


async def _route_rest(question: str, asked: AskedIntent, code: CodeSearch) -> RouterDecision:
    """Choose by intent, then by the files, texts and names in the question, and search otherwise."""
    if (chosen := await route_intent(question, asked, code)) is not None:
        return {**chosen, "meanings": meanings} if (meanings := list_meanings(asked)) else chosen
    for attempt in (_route_paths, _route_literals, _route_names):
        chosen = await attempt(question, code)
        if chosen is not None:
            return chosen
    return decide_retrieval(
        [request_search(question, reasoning="the question as it is")], fast_path=False, reasoning="no name to go by"
    )


async def _route_in_language(asked: LanguageFilter, code: CodeSearch) -> RouterDecision:
    """Answer from the files of one language; with nothing if the repository has none."""
    if not any(entry.path.endswith(asked.endings) for entry in await code.files()):
        return decide_retrieval([], fast_path=True, reasoning=f"{NONE_OF} {asked.language}")
    chosen = await route_by_rules(asked.question, code)
    patterns = [f"*{ending}" for ending in asked.endings]
    for request in chosen["requests"]:
        request["patterns"] = request["patterns"] or patterns
    return chosen


async def _route_left_out(question: str, code: CodeSearch) -> RouterDecision | None:
    """Say where unindexed paths are; their text is missing here."""
    mentioned = dict.fromkeys(mention.path for mention in find_mentions(question).paths)
    if not mentioned:
        return None
    names = FilePathLookup(await code.files(), mentioned)
    for path in mentioned:
        if names.find_alike(path) or await find_folder(code, path) or not await find_left_out(code, path):
            return None
    return decide_retrieval([], fast_path=True, reasoning=NOT_INDEXED, unknown=list(mentioned))


async def _refer_to_project(question: str, code: CodeSearch) -> str:
    """Write "this project" for the repository's name, unless just that name is defined in it."""
    about = refer_to_project(question, code.repository)
    if about == " ".join(question.split()):
        return question
    # What is called like the project has calls, and the project has dependencies.
    is_project = asks_for_dependencies(question) or not await _is_defined_so(code.repository, question, code)
    return about if is_project else question


async def _is_defined_so(repository: str, question: str, code: SymbolIndex) -> bool:
    """Whether anything other than a module or an import has the project's name, as the question spells it."""
    name = repository.rpartition("/")[2]
    symbols = [one.symbol for one in await code.definitions(name) if not is_test_or_docs(one.path)]
    things = {one.name for one in symbols if one.kind != "module" and not is_import_line(one.kind, one.signature)}
    return any(word.strip("?!.,:;") in things for word in question.split())


async def _route_literals(question: str, code: CodeSearch) -> RouterDecision | None:
    """Search for the texts that the question quotes, unless they are defined names."""
    literals = [one for one in find_literals(question) if one.is_message or not await code.definitions(one.text)]
    if not literals:
        return None
    reason = "a text that the question quotes"
    requests = [
        request_lookup("message", one.text, reasoning=reason)
        if one.is_message
        else request_search(make_literal_query(one), reasoning=reason)
        for one in literals
    ]
    quoted = " ".join(one.text for one in literals)
    unknown = [one.text for one in literals if not one.is_message and find_mentions(f"`{one.text}`").names]
    outside = question
    for literal in literals:
        outside = outside.replace(literal.text, " ")
    definitions, _ = await _request_definitions(find_mentions(outside), code)
    if find_content_terms(outside) - find_content_terms(quoted):
        requests.append(request_search(question, reasoning="what the question says around it"))
    return decide_retrieval([*requests, *definitions], fast_path=False, reasoning="a quoted text", unknown=unknown)


async def _find_mentioned(question: str, code: CodeSearch) -> list[tuple[FileEntry, PathMention]]:
    mentioned = find_mentions(question).paths
    names = FilePathLookup(await code.files() if mentioned else (), (mention.path for mention in mentioned))
    return [
        (entry, mention)
        for mention in mentioned
        for entry in choose_files(names.find_alike(mention.path), mention.start_line)
    ]


def _route_linked(question: str) -> RouterDecision | None:
    """Show the lines behind links, at their commit."""
    lines = [
        request_lines(
            linked.path,
            linked.start_line,
            min(linked.end_line, linked.start_line + MAX_LINES - 1),
            reasoning="lines that a link leads to",
            commit=linked.commit,
        )
        for linked in find_linked_lines(question)
    ]
    return decide_retrieval(lines, fast_path=True, reasoning="lines by number") if lines else None


async def _route_lines(question: str, code: CodeSearch) -> RouterDecision | None:
    """Show the lines that the question gives by number."""
    lines = [
        request_lines(
            entry.path,
            min(mention.start_line, entry.lines),
            min(max(mention.end_line, mention.start_line), mention.start_line + MAX_LINES, entry.lines),
            reasoning="lines that the question names"
            if mention.start_line <= entry.lines
            else f"the file ends at line {entry.lines}",
        )
        for entry, mention in await _find_mentioned(question, code)
        if mention.start_line
    ]
    return decide_retrieval(lines, fast_path=True, reasoning="lines by number") if lines else None


async def _route_paths(question: str, code: CodeSearch) -> RouterDecision | None:
    paths = [entry.path for entry, _ in await _find_mentioned(question, code)]
    return await _route_files(question, paths, code) if paths else None


async def _route_files(question: str, paths: Sequence[str], code: CodeSearch) -> RouterDecision:
    """Outline the files when the question asks nothing else, otherwise search within them."""
    rest = (
        find_content_terms(question)
        - find_content_terms(" ".join(paths))
        - find_content_terms("contain show outline define open exist")
    )
    if not rest:
        return decide_retrieval(
            [request_outline(path, reasoning="a file that the question names") for path in paths[:MAX_ALIKE]],
            fast_path=True,
            reasoning="a file by name",
        )
    within = [request_search(question, patterns=[f"/{path}" for path in paths], reasoning="within the files named")]
    definitions, _ = await _request_definitions(find_mentions(question), code)
    return decide_retrieval([*definitions, *within], fast_path=True, reasoning="a question about a file")


async def _route_names(question: str, code: CodeSearch) -> RouterDecision | None:
    mentions = find_mentions(question)
    around = find_content_terms(question) - find_content_terms(
        " ".join((*mentions.names, *mentions.words, *mentions.codes))
    )
    if len(around) > _MAX_WORDS_AROUND:
        mentions = replace(mentions, words=())
    requests, unknown = await _request_definitions(mentions, code)
    codes = [request_search(value, reasoning="a code that the question quotes") for value in mentions.codes]
    if not requests and not codes and not unknown:
        return None
    if around:
        requests.append(request_search(question, reasoning="what the question says around the names"))
    elif unknown and not requests:
        requests.append(request_search(" ".join(unknown), reasoning="the names are not defined here"))
    return decide_retrieval(
        [*codes, *requests],
        fast_path=len(requests) > len(unknown) or bool(codes),
        unknown=unknown,
        reasoning="names in the question",
    )


async def _request_definitions(mentions: Mentions, code: CodeSearch) -> tuple[list[RetrievalRequest], list[str]]:
    """Return lookups for defined names, and undefined names that look like code."""
    requests: dict[str, RetrievalRequest] = {}
    unknown: list[str] = []
    for written in (*mentions.names, *mentions.words):
        known = await find_known_name(written, code)
        if known is not None and (written in mentions.names or await _is_exact(written, code)):
            requests.setdefault(known.name, request_name("definition", known))
        elif written in mentions.names:
            unknown.append(written)
    return list(requests.values()), unknown


async def _is_exact(word: str, code: SymbolIndex) -> bool:
    """Whether a capitalised word of the question is exactly a definition's name."""
    return not (word.isupper() and len(word) <= _MAX_ACRONYM) and await is_defined_exactly(word, code)
