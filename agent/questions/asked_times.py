"""Reads which versions, branches, commits, periods and days a question about changes names."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from agent.questions.terms import UNSPACED
from indexer.text.linear_patterns import compile_pattern

_LONGEST = 40  # words of a question in which times are looked for
_MAX_WORDS = 4  # of one of them
_NEWEST = compile_pattern(
    r"(?i)(?:the |our |your )?(?:last|latest|newest|most recent|current|previous|letzte[nrms]?|dernière|última?)\s+"
    r"(?:stable )?(?:release|version|tag|versión)"
)
_VERSION = re.compile(
    r"(?i)(?:the )?(?:release |version |versión |tag )?"
    r"(?!\d{4}-\d{2}-\d{2}(?:$|\D))(?P<name>[\w.@/-]{0,60}?\d{1,6}(?:[._-]\d{1,6}){1,4}[\w.+-]{0,30}|v\d{1,6}|(?:alpha|beta|rc)[.-]?\d{1,4}"
    r"|(?=[a-f]{0,39}\d)[0-9a-f]{7,40})(?: (?:release|version|tag))?"
)
_BRANCH = re.compile(
    r"(?i)(?:the )?(?:branch )?(?P<name>main|master|develop(?:ment)?|trunk|head|[\w.-]{1,60}/[\w./+-]{1,60})"
    r"(?: branch)?"
)
_FILE_ENDING = re.compile(r"/[^/]*\.(?!x$)[A-Za-z]{1,6}$")
# Without limits: to count letters of all scripts takes RE2 a tenth of a second to compile.
_RANGE = compile_pattern(r"(?P<from>[\w/@+-][\w./@+-]*?)\.{2,3}(?P<until>[\w/@+-][\w./@+-]*)")
# Whatever stands between these is meant as a commit where one of the two is surely one.
_BETWEEN = frozenset("between zwischen entre между".split())
_AND = frozenset("and und et y e и".split())
_JOINS = compile_pattern(
    r"(?i)(?:and|to|with|against|vs\.?|versus|→|->|und|bis|et|à|y|a|e|и|до|と|和|과|와)?"
    r"(?: ?(?:the|on)?(?: ?(?:branch|tag|release|version))?)?"
)
_SINCE = compile_pattern(
    r"(?i)(?:since|after|as of|against|compared (?:to|with)|relative to|from|than|over|diff|seit|nach|depuis|desde"
    r"|после|с|自|自从)(?: (?:the|our|der|dem|la|el|le|version|versión|release|tag|commit)){0,2}$"
)
_SINCE_BEHIND = compile_pattern(r"(?:から|以降|以来|以后|之后|이후|부터)")
# Between two: the second is the older one.
_BACKWARDS = compile_pattern(
    r"(?i)\b(?:compared (?:to|with)|relative to|differs? from|different from|over|than|not (?:in|on|part)|but not)\b"
    r"|n['’]t\b"
)
_PENDING = compile_pattern(
    r"(?i)\b(?:pending|unreleased|not (?:yet )?released|upcoming|next (?:release|version))\b|unveröffentlicht"
    r"|未リリース|未发布"
)
_COUNTS = {
    word: number
    for number, words in enumerate(
        (
            "two zwei deux dos dois duas due два 两 二", "three drei trois tres três tre три 三",
            "four vier quatre cuatro quatro quattro четыре 四", "five fünf cinq cinco cinque пять 五",
            "six sechs seis sei шесть 六", "seven sieben sept siete sete sette семь 七",
            "eight acht huit ocho oito otto восемь 八", "nine neun neuf nueve nove девять 九",
            "ten zehn dix diez dez dieci десять 十",
        ),
        start=2,
    )
    for word in words.split()
}  # fmt: skip
_NUMBER = r"\d{1,3}|" + "|".join(_COUNTS)
_LATEST = (
    r"last|latest|newest|(?:most )?recent|previous|past|letzten?|neuesten?|jüngsten?|derniers?|récents?|últimos?"
    r"|recientes|recentes|ultimi|последни[ехй]|最近|最新|直近"
)
_LAST_COMMITS = compile_pattern(
    rf"(?i)(?:(?P<before>{_NUMBER}) ?)?(?:{_LATEST})(?:の|的)? ?(?:(?P<between>{_NUMBER})(?:個|件|个|次)?(?:の|的)? ?)?"
    rf"(?:git )?(?:commits?|коммит(?:ов|а|ы)?|コミット|提交|커밋)"
    rf"|(?P<behind>{_NUMBER}) (?:git )?commits? (?:{_LATEST})"
)
_BRANCHES = frozenset("main master develop development trunk head newest".split())
_STRIPPED = " ?!,;:`'\"()[]"


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedTimes:
    """The times of a question as `parts` of a request for changes, and the rest of the question."""

    parts: Mapping[str, str]
    rest: str

    @property
    def is_comparison(self) -> bool:
        """Whether two ends are named, one of which is almost certainly a version or a branch."""
        return any(map(names_version, (self.parts.get("from", ""), self.parts.get("until", ""))))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Found:
    """A version or a branch, with its words."""

    name: str
    start: int
    end: int
    is_branch: bool = False


def read_times(question: str) -> AskedTimes:
    """Find the number of commits, the releases, the branches and the period in a question."""
    return _read_count(question) or _read_refs(question)


def _read_refs(question: str) -> AskedTimes:
    words = UNSPACED.sub(r" \g<0> ", question).split()[:_LONGEST]
    for at, word in enumerate(words):
        if found := _RANGE.fullmatch(word.strip(_STRIPPED)):
            return _take(words, at, at + 1, {"from": found["from"], "until": found["until"]})
        if word.lower() in _BETWEEN and "".join(words[at + 2 : at + 3]).lower() in _AND and len(words) > at + 3:
            ends = words[at + 1].strip(_STRIPPED), words[at + 3].strip(_STRIPPED)
            if any(map(names_version, ends)):
                return _take(words, at, at + 4, {"from": ends[0], "until": ends[1]})
    refs = _find_refs(words)
    named = [one for one in refs if not one.is_branch]
    for first, second in pairwise(refs):
        between = " ".join(words[first.end : second.start]).strip(_STRIPPED)
        is_backwards = _BACKWARDS.search(between) is not None
        if is_backwards or _JOINS.fullmatch(between) or (first in named and second in named):
            older, newer = (second, first) if is_backwards else (first, second)
            return _take(words, first.start, second.end, {"from": older.name, "until": newer.name})
    for one in refs:
        behind = "".join(words[one.end : one.end + 1])
        if _SINCE.search(" ".join(words[: one.start])) or _SINCE_BEHIND.match(behind):
            return _take(words, one.start, one.end, {"since": one.name})
    if named:
        return _take(words, named[0].start, named[0].end, {"release": named[0].name})
    return _find_period(words)


def _read_count(question: str) -> AskedTimes | None:
    """Read how many of the newest commits a question is about; None if it does not say."""
    found = _LAST_COMMITS.search(question)
    if found is None:
        return None
    number = (found["before"] or found["between"] or found["behind"] or "1").lower()
    count = int(number) if number.isdigit() else _COUNTS.get(number, 0)
    rest = f"{question[: found.start()]} {question[found.end() :]}"
    return AskedTimes(parts={"count": str(count)}, rest=" ".join(rest.split())) if count else None


def names_version(written: str) -> bool:
    """Whether a name is almost certainly that of a version, a branch or a commit."""
    return bool(written) and (written.lower() in _BRANCHES or any(map(str.isdigit, written)))


def read_release(written: str) -> str:
    """Read the name of a release; empty for anything else."""
    bare = " ".join(written.split()).strip("`'\" ,.")
    if bare == "newest" or _NEWEST.fullmatch(bare):
        return "newest"
    found = _VERSION.fullmatch(bare)
    return found["name"] if found else ""


def _find_refs(words: list[str]) -> list[_Found]:
    found: list[_Found] = []
    at = 0
    while at < len(words):
        ends = range(min(at + _MAX_WORDS, len(words)), at, -1)
        best = next((one for end in ends if (one := _read_ref(words, at, end)) is not None), None)
        if best is not None:
            found.append(best)
        at = best.end if best is not None else at + 1
    return found


def _read_ref(words: list[str], start: int, end: int) -> _Found | None:
    window = " ".join(words[start:end]).strip(_STRIPPED)
    if name := read_release(window):
        return _Found(name=name, start=start, end=end)
    branch = _BRANCH.fullmatch(window)
    is_file = _FILE_ENDING.search(window) is not None
    return _Found(name=branch["name"], start=start, end=end, is_branch=True) if branch and not is_file else None


def _find_period(words: list[str]) -> AskedTimes:
    now = int(time.time())
    for length in range(_MAX_WORDS, 0, -1):
        for at in range(len(words) - length + 1):
            window = " ".join(words[at : at + length]).strip(_STRIPPED)
            if parse_period(window, now) is not None:
                is_since = _SINCE.search(" ".join(words[:at])) is not None
                return _take(words, at, at + length, {"since" if is_since else "period": window})
    text = " ".join(words)
    if (pending := _PENDING.search(text)) is not None:
        return AskedTimes(parts={"pending": pending[0]}, rest=text.replace(pending[0], " "))
    return AskedTimes(parts={}, rest=text)


def _take(words: list[str], start: int, end: int, parts: Mapping[str, str]) -> AskedTimes:
    return AskedTimes(parts=parts, rest=" ".join([*words[:start], *words[end:]]))


_DAYS = {"day": 1, "week": 7, "fortnight": 14, "month": 30, "quarter": 91, "year": 365}
_NUMBERS = {"a": 1, "one": 1, "couple": 2, "two": 2, "few": 3, "three": 3, "four": 4, "five": 5, "six": 6, "ten": 10}
_AGO = re.compile(
    r"(?:the |these )?(?:last|past|previous|recent)?(?: ?(?P<number>\d{1,3}|a|one|two|three|four|five|six|ten)"
    r"|(?: ?a)? ?(?P<vague>few|couple)(?: of)?)? ?(?P<unit>day|week|fortnight|month|quarter|year)s?(?: ago)?"
)
_ISO = re.compile(r"(?P<year>\d{4})(?:[-/.](?P<month>\d{1,2})(?:[-/.](?P<day>\d{1,2}))?)?")
_MONTHS = "january february march april may june july august september october november december".split()
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_NAMED = re.compile(r"(?:last )?(?P<name>[a-z]{3,9})(?: (?P<day>\d{1,2}))?,?(?: (?P<year>\d{4}))?")
_EARLIEST = 1990
_TRANSLATED = {
    **dict.fromkeys("heute aujourd'hui hoy hoje сегодня 今日 今天 오늘".split(), "today"),
    **dict.fromkeys("gestern ayer ontem вчера 昨日 昨天 어제".split(), "yesterday"),
    **dict.fromkeys("今週 本周 이번주".split(), "this week"),
    **dict.fromkeys(("diese woche", "cette semaine", "esta semana", "эту неделю", "этой неделе"), "this week"),
    **dict.fromkeys("先週 上周 上週 지난주".split(), "last week"),
    **dict.fromkeys(("letzte woche", "letzter woche", "semaine dernière", "semana pasada"), "last week"),
    **dict.fromkeys(("semana passada", "прошлую неделю", "прошлой неделе", "неделю"), "last week"),
    **dict.fromkeys(("先月", "上个月", "letzten monat", "mois dernier", "mes pasado", "mês passado"), "last month"),
}


def parse_period(written: str, now: int) -> int | None:
    """Return when a period began, in seconds since the epoch; None for anything else."""
    text = " ".join(written[:60].lower().split()).removeprefix("in ").removeprefix("on ").removeprefix("during ")
    text = _TRANSLATED.get(text, text)
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    start = _read_word(text, today) or _read_span(text, today) or _read_date(text) or _read_name(text, today)
    return int(start.timestamp()) if start is not None else None


def _read_word(text: str, today: datetime) -> datetime | None:
    return {
        "today": today,
        "yesterday": today - timedelta(days=1),
        "this week": today - timedelta(days=today.weekday()),
        "this month": today.replace(day=1),
        "this year": today.replace(month=1, day=1),
    }.get(text)


def _read_span(text: str, today: datetime) -> datetime | None:
    found = _AGO.fullmatch(text)
    if found is None:
        return None
    number = found["number"] or found["vague"] or "one"
    count = int(number) if number.isdigit() else _NUMBERS[number]
    return today - timedelta(days=count * _DAYS[found["unit"]])


def _read_date(text: str) -> datetime | None:
    found = _ISO.fullmatch(text)
    return _make_date(int(found["year"]), int(found["month"] or 1), int(found["day"] or 1)) if found else None


def _read_name(text: str, today: datetime) -> datetime | None:
    """Read a weekday or a month as the most recent one."""
    found = _NAMED.fullmatch(text)
    if found is None:
        return None
    if found["name"] in _WEEKDAYS:
        return today - timedelta(days=(today.weekday() - _WEEKDAYS.index(found["name"])) % 7 or 7)
    month = next((at for at, name in enumerate(_MONTHS, 1) if found["name"] in {name, name[:3]}), 0)
    if not month:
        return None
    day = int(found["day"] or 1)
    year = int(found["year"] or today.year)
    date = _make_date(year, month, day)
    return _make_date(year - 1, month, day) if date is not None and date > today and not found["year"] else date


def _make_date(year: int, month: int, day: int) -> datetime | None:
    try:
        date = datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        return None
    return date if year >= _EARLIEST else None
