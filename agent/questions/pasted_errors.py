"""Extracts program output from pasted text: an error, a log line, a record, with surrounding remarks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent.questions.literals import find_quoted_messages, is_asking
from agent.questions.mentions import normalize_name
from indexer.text.linear_patterns import compile_pattern

MAX_TEXTS = 10  # that are looked for
_LONGEST = 8_000  # characters that are looked at
_LONGEST_LINE = 1_000
_MAX_LOGGED, _MIN_LOGGED = 300, 10  # characters of a line of a log that is cut, and its lines
_MAX_MESSAGE = 400
_MIN_WORDS, _MIN_LETTERS = 2, 8
_MIN_UNMARKED = 3  # words of a text without the form of program output
_BEFORE_FAILURE, _AFTER_FAILURE = 40, 8  # lines
_AT_ONCE = 500  # lines
_DEEPEST = 4  # records within records
_KIND = r"(?:Error|Exception|Warning|Exit|Fault|Failure|Interrupt)"
_PART = r"[A-Za-z_]\w{0,80}"
# A name that only exceptions have, or a dotted one of a class, such as `jinja2.exceptions.TemplateNotFound`.
_NAME = (
    rf"(?P<name>(?:{_PART}(?:\.|::|\\)){{0,10}}(?:[A-Z]\w{{0,80}}{_KIND}|{_KIND})(?!\w)"
    rf"|(?:{_PART}(?:\.|::|\\)){{1,10}}[A-Z]\w{{1,80}}(?!\w)"
    r"|[A-Z][a-z0-9]{1,40}(?:[A-Z][a-z0-9]{1,40}){1,5}(?!\w))"
)
_NAMED = re.compile(rf"(?<![\w.:/\\]){_NAME}:[ \t]+(?P<message>[^\n]{{2,}})")
_ALONE = re.compile(rf"\s*`?{_NAME}`?[\s.!:]*")
_ENDING = re.compile(rf"{_KIND}$")
_GENERAL = frozenset({"Error", "Exception", "Warning", "Exit", "Fault", "Failure", "Interrupt"})
_BEFORE = frozenset({"", '"', "'", "`", "“", "E", "Uncaught", "Uncaught (in promise)", "Caused by:", "(", "["})
_ASKS = compile_pattern(r"(?i)(?:how|what|where|why|who|which|when|is|are|does|do|can|should)\b|[^\n]*\?\s*$")
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»"}

_LEVELS = r"(?:ERROR|ERR|WARN(?:ING)?|INFO|DEBUG|TRACE|FATAL|CRIT(?:ICAL)?|SEVERE|NOTICE|PANIC|ALERT|EMERG)"
_CLOCK = r"\d{1,2}:\d{2}:\d{2}"
# Where a line of a log begins: at a time, a level, or what shells and compilers put before what they say.
_TIME = re.compile(
    rf"[\[(<]?(?:\d{{4}}[-/]\d{{1,2}}[-/]\d{{1,2}}[T ,_]+"
    rf"|(?:[A-Z][a-z]{{2}},? +)?\d{{1,2}}[-/ ][A-Z][a-z]{{2}}[-/ ]\d{{4}}[: ]+"
    rf"|(?:[A-Z][a-z]{{2}} +){{1,2}}\d{{1,2}} +)?(?<!\d){_CLOCK}(?!\w)|(?<!\w)[IWEF]\d{{4}} {_CLOCK}"
)
_LEVEL = re.compile(
    rf"(?:^|(?<=\s))[\[(<]?{_LEVELS}(?:[\])>|:!]|\[\w|\s+(?:-{{1,3}}\s|[\[(]|[\w.:/-]{{1,60}}:\s))|^\W{{0,3}}(?i:{_LEVELS})\]\s|^\W{{0,3}}{_LEVELS}\s"
    r"|^(?:[\w./-]{1,60}(?::\d{1,6}){0,2}: )?(?:\w{1,40} )?"
    r"(?i:error|fatal(?: error)?|panic|failure|warning)(?:\[\w{1,20}\])?: (?=\S)|^thread '[^'\n]{1,80}' panicked\b"
)
_FIELD = re.compile(
    r"(?<![\w.-])(?P<key>[A-Za-z_][\w.-]{0,40})=(?P<value>\"(?:[^\"\\\n]|\\.){0,2000}\"|[^\s\"]\S{0,400})"
)
_TELLING_FIELDS = frozenset("level lvl severity loglevel msg message err error exception reason".split())
# Prefixes of a message: brackets, times and numbers, levels, sources, and separators.
_PREFIX = re.compile(
    rf"(?:[\[(<][^\])>\n]{{0,80}}[\])>]:?|[IWEFD]?\d[\d:.,/+TZ_-]*(?![\w'])|(?:UTC|GMT|[AP]M|Z)\b"
    rf"|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b,?\s*)+"
    rf"|{_LEVELS}(?!\w)|(?i:(?:npm|make|fatal|error|panic|warning|failure|err)(?:\[\w+\])?[!:])"
    r"|[\w$@][\w$./@:\\-]{0,100}(?:\[[\w-]{1,20}\])?(?::\d{1,7})*(?:\s*\||\s?:(?![/\w:])|\s+-{1,3}(?=\s))|[\w.]{1,60}:(?=\w)|(?:stderr|stdout)\s[FP]\s"
    r"|[-|:;*>#,~=!•.]+)\s*"
)
_PARTS = re.compile(r":\s+|\]\s*|\s[-|–—>]+\s|\s*\|\s|\)\s|;\s|,\s|<-+|->|//|(?<=[.?!…])\s|\s\(")
_WORD = re.compile(r"[^\W\d_]+")
_ERROR_CODE = re.compile(r"[A-Z][A-Z0-9]{1,40}(?:_[A-Z0-9]{1,40}){1,8}")
_BEGINS_WITH_VERB = compile_pattern(
    r"(?i)(?:is|are|can|could|should|would|will|was|were|has|have|do|does|did)\b[^?？]*$"
)
_FAILURE = compile_pattern(
    r"(?:Traceback \(most recent|\b(?:[A-Z][A-Za-z0-9]*)?(?:Error|Exception|Panic|Fault)\b|\bpanic:|\bpanicked at"
    r"|\b(?:ERROR|FATAL|CRITICAL|SEVERE)\b|\bCaused by:|\bfatal:|\berror:"
    r"|\b(?:level|severity)[\"']?[=:] ?[\"']?(?:error|fatal))"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PastedError:
    """The exception as written, with dots between its parts, and the possible texts of its message.

    The likeliest text is the first. `is_evident` says that the form shows a program's message;
    otherwise the code has to decide.
    """

    name: str = ""
    texts: tuple[str, ...] = ()
    is_evident: bool = True

    @property
    def last_name(self) -> str:
        """The name of the exception itself, without its qualifier."""
        return self.name.rpartition(".")[2]


def parse_pasted_error(text: str) -> PastedError | None:
    """Parse the last error in a text, the last line of a log, or a possible message; None for a question."""
    recent = "\n".join(cut_to_failure(text.splitlines()))[-_LONGEST:] if len(text) > _LONGEST else text
    found = [one for one in _NAMED.finditer(recent) if _is_error(one) and not _is_logger(one)]
    if found:
        return _make_error(recent, found[-1])
    alone = _ALONE.fullmatch(recent)
    if alone is not None and ("." in normalize_name(alone["name"]) or _ENDING.search(alone["name"])):
        return PastedError(name=normalize_name(alone["name"].replace("\\", ".")))
    lines = [line.strip().strip("`").lstrip("> ") for line in recent.splitlines() if line.strip("`> \t")]
    logged = [entry for line in lines if (entry := _cut_remark(line)) is not None]
    if logged:
        failing = [line for line in logged if _FAILURE.search(line)] or logged
        texts = _list_texts(failing[-1])
        return PastedError(texts=texts) if texts else None
    messages = [text for one in find_quoted_messages(recent) for text in (cut_message(one), *_list_texts(one))]
    if quoted := [*dict.fromkeys(one for one in messages if len(one.split()) >= _MIN_UNMARKED)]:
        return PastedError(texts=tuple(quoted[:MAX_TEXTS]), is_evident=False)
    # Text that asks nothing may be program output, with a remark before or after it.
    shortened = [" ".join(line[:_LONGEST_LINE].split()) for line in lines[:3]]
    parts = [part for line in shortened for part in (line, *_PARTS.split(line))]
    said = _choose_texts((part for part in parts if _may_be_said(part)), fewest=_MIN_UNMARKED)
    return PastedError(texts=said, is_evident=False) if said else None


def _may_be_said(part: str) -> bool:
    """Whether a program may print a text: no question, unless it only starts like one ("should have ended")."""
    return not is_asking(part) or _BEGINS_WITH_VERB.match(part) is not None


def find_last_failure(lines: Sequence[str]) -> tuple[int, int]:
    """Return the line range of the last failure; empty if there is none."""
    last = _find_last_failing(lines)
    if last is None:
        return 0, 0
    first = next((at for at in range(max(0, last - _BEFORE_FAILURE), last) if _FAILURE.search(lines[at])), last)
    return max(0, first - 2), min(len(lines), last + _AFTER_FAILURE)


def cut_log(text: str, most: int) -> str | None:
    """Cut a log to its last failure, with remarks in its first and last lines; None for anything else."""
    lines = [line[:_MAX_LOGGED] for line in text.splitlines()]
    first, end = find_last_failure(lines)
    if not end or len(lines) < _MIN_LOGGED:
        return None
    kept = list(lines[first:end])
    before, after = lines[: min(first, 1)], lines[max(end, len(lines) - 1) :]
    while sum(len(line) + 1 for line in (*before, *kept, *after)) > most and len(kept) > _AFTER_FAILURE + 1:
        kept.pop(0)
    return "\n".join((*before, *kept, *after))[-most:]


def _find_last_failing(lines: Sequence[str]) -> int | None:
    """Return the last line that reports a failure. Many are searched at once, because most do not."""
    for end in range(len(lines), 0, -_AT_ONCE):
        begin = max(0, end - _AT_ONCE)
        if _FAILURE.search("\n".join(lines[begin:end])):
            return next(at for at in range(end - 1, begin - 1, -1) if _FAILURE.search(lines[at]))
    return None


def cut_to_failure(lines: Sequence[str]) -> Sequence[str]:
    """Return the lines of the last failure; the last lines if there is none."""
    first, end = find_last_failure(lines)
    return lines[first:end] if end else lines[-_BEFORE_FAILURE:]


def _cut_remark(line: str) -> str | None:
    """Return a line of a log from its message on; None if it does not look like one."""
    starts = [found.start() for pattern in (_TIME, _LEVEL) if (found := pattern.search(line)) is not None]
    if starts:
        return line[min(starts) :]
    keys = {found["key"].lower() for found in _FIELD.finditer(line)}
    return line if keys & _TELLING_FIELDS or any(True for _ in _read_records(line)) else None


def _list_texts(line: str) -> tuple[str, ...]:
    """List possible messages in a line: the line without prefixes, its field values, its last parts."""
    values = [value for record in _read_records(line) for value in _list_values(record)]
    values += [
        found["value"].strip('"').replace('\\"', '"') for found in _FIELD.finditer(line) if '"' in found["value"]
    ]
    first = line.find('{"')
    bare = " ".join(_FIELD.sub(" ", line[:first] if first >= 0 and values else line).split())[:_LONGEST_LINE]
    while (prefix := _PREFIX.match(bare)) is not None and len(prefix[0]) < len(bare):
        bare = bare[prefix.end() :]
    breaks = [found.end() for found in _PARTS.finditer(bare)]
    suffixes = [bare[at:] for at in breaks]
    inner = [part for whole in (bare, *values) for part in _PARTS.split(whole[:_LONGEST_LINE])]
    return _choose_texts((bare, *values, *suffixes, *inner), fewest=_MIN_WORDS)


def _choose_texts(texts: Iterable[str], *, fewest: int) -> tuple[str, ...]:
    """Keep the texts with enough distinctive words."""
    cut = (cut_message(one) for one in texts)
    long_enough = (
        one
        for one in cut
        if (" " in one or _ERROR_CODE.fullmatch(one))
        and len(words := _WORD.findall(one)) >= fewest
        and sum(map(len, words)) >= _MIN_LETTERS
    )
    return tuple(dict.fromkeys(long_enough))[:MAX_TEXTS]


def _read_records(line: str) -> Iterator[Mapping[str, object]]:
    """Yield the first JSON object of a line."""
    first = line.find('{"')
    if first < 0:
        return
    try:
        record, _ = json.JSONDecoder().raw_decode(line[first:])
    except (ValueError, RecursionError):
        return
    yield record


def _list_values(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the texts of a record, nested records included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list) and depth < _DEEPEST:
        for one in value.values() if isinstance(value, dict) else value:
            yield from _list_values(one, depth + 1)


def _is_error(found: re.Match[str]) -> bool:
    """Whether the text before a colon is an exception: not in `TypeScript: how is it built?` or `Server Error: /`."""
    before = found.string[found.string.rfind("\n", 0, found.start()) + 1 : found.start()].strip()
    if found["name"] in _GENERAL:
        return before in _BEFORE
    is_sure = "." in found["name"] or "::" in found["name"] or bool(_ENDING.search(found["name"]))
    return is_sure or (before in _BEFORE and not _ASKS.match(found["message"]))


def _is_logger(found: re.Match[str]) -> bool:
    """Whether a dotted name is a logger's, and not an exception's."""
    text = found.string
    line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
    return not _ENDING.search(found["name"]) and (_TIME.search(line) or _LEVEL.search(f"{line}x: ")) is not None


def _make_error(text: str, found: re.Match[str]) -> PastedError:
    before = text[: found.start()]
    closing = _QUOTES.get(before[-1:], "")
    message = found["message"]
    if closing and closing in message:
        message = message[: message.rindex(closing)]  # it is quoted with its name
    texts = dict.fromkeys([cut_message(message), *_list_texts(message)])
    name = "" if found["name"] in _GENERAL else normalize_name(found["name"].replace("\\", "."))
    return PastedError(name=name, texts=tuple(texts)[:MAX_TEXTS])


def cut_message(message: str) -> str:
    """Return a message on one line, shortened if it is very long."""
    return " ".join(message.split())[:_MAX_MESSAGE]
