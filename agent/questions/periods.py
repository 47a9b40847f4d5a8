"""Reads what people write for a time: "last week", "the past 3 months", "yesterday", "2024-05-01", "May 2024"."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

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
    """Return when a period began, in seconds since the epoch; None for what is none."""
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
    """Read a day of the week or a month, the last one that there was."""
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
