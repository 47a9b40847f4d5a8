"""Turns a pasted error into requests: the frames of a stack trace, the exception, the place of its message."""

from __future__ import annotations

import difflib

from agent.evidence.path_lookup import FilePathLookup
from agent.evidence.quoted_text import find_said
from agent.evidence.request_builders import decide_retrieval, request_lines, request_lookup, request_search
from agent.ports import CodeLookup, CodeSearch
from agent.questions.pasted_errors import parse_pasted_error
from agent.questions.stack_traces import StackFrame, parse_error_message, parse_error_name, parse_frames
from agent.state import RetrievalRequest, RouterDecision
from indexer.types import FileEntry

MAX_FRAMES_SHOWN = 3
FUNCTION_HEAD = 14
_FEWEST_WORDS = 3  # of a message; a shorter one stands everywhere
_SAME_LINE = 0.8  # how much of a line in a trace must be alike to be the same line in another version


async def route_trace(question: str, code: CodeLookup) -> RouterDecision | None:
    """Show the code of a stack trace's frames, the error that it ends with, and the place of its message."""
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


async def _request_frame(entry: FileEntry, frame: StackFrame, code: CodeLookup) -> RetrievalRequest:
    """Ask for the line of a frame; where another version wrote the trace, for the function that it names."""
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


async def _find_moved_line(source: str, path: str, start: int, end: int, code: CodeLookup) -> int | None:
    """Find the line of the function that reads most like the one in the trace."""
    lines = [line.strip() for line in (await code.read(path, start, end)).text.split("\n")]
    close = difflib.get_close_matches(source, lines, n=1, cutoff=_SAME_LINE)
    return start + lines.index(close[0]) if close else None


async def route_error(question: str, code: CodeSearch) -> RouterDecision | None:
    """Look for where an exception comes from, and for the place that says its message, whatever else stands in it."""
    error = parse_pasted_error(question)
    if error is None or (error.name and not error.texts and await code.definitions(error.name)):
        return None
    said = await find_said(code, error.texts, is_evident=error.is_evident)
    if not said and not error.is_evident:
        return None
    message = said or next(iter(error.texts), "")
    requests: list[RetrievalRequest] = []
    if error.name:
        requests.append(request_lookup("error", error.name, reasoning="the exception that was pasted"))
    if said or len(message.split()) >= _FEWEST_WORDS or not error.name:
        requests.append(request_lookup("message", message, reasoning="what the error says"))
    else:
        searched = f"{error.last_name} {message}"
        requests.append(request_search(searched, reasoning="the exception by its name"))
    return decide_retrieval(requests, fast_path=False, reasoning="a pasted error")
