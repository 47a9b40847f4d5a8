"""Reads the rules that tell where a secret may stand, which are data in the form that gitleaks reads."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from indexer.secrets.secret_values import is_password, is_random, is_url_password, measure_entropy

Judge = Callable[[str], bool]

JUDGES: Mapping[str, Judge] = MappingProxyType(
    {"password": is_password, "random": is_random, "url-password": is_url_password}
)
_FILE = Path(__file__).with_name("secret_rules.toml")


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """Where a secret stands: a pattern of RE2, and what else holds of a secret.

    The group that takes part in a match is masked, or all of it. A rule with a `prefilter` is only tried where
    that matches.
    """

    place: int
    id: str
    label: str
    regex: str
    prefilter: str
    entropy: float
    judge: Judge | None
    allowed: tuple[re.Pattern[str], ...]
    keywords: tuple[str, ...]
    examples: tuple[str, ...]
    clean: tuple[str, ...]

    def is_secret(self, value: str) -> bool:
        """Whether what the pattern found is one."""
        if any(pattern.search(value) for pattern in self.allowed):
            return False
        if self.entropy and measure_entropy(value) < self.entropy:
            return False
        return self.judge is None or self.judge(value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """All rules, the surest first, and the patterns that tell whether those behind a prefilter are worth trying."""

    rules: tuple[Rule, ...]
    prefilters: Mapping[str, str]


def load_rules() -> Rules:
    """Read the rules that come with citebot."""
    with _FILE.open("rb") as file:
        tables = tomllib.load(file)
    return Rules(
        rules=tuple(_read_rule(place, table) for place, table in enumerate(tables["rules"])),
        prefilters={table["id"]: table["regex"] for table in tables["prefilters"]},
    )


def _read_rule(place: int, table: Mapping[str, Any]) -> Rule:
    allowed = [pattern for each in table.get("allowlists", ()) for pattern in each["regexes"]]
    return Rule(
        place=place,
        id=table["id"],
        label=table.get("tags", [table["id"]])[0],
        regex=table["regex"],
        prefilter=table.get("prefilter", ""),
        entropy=table.get("entropy", 0.0),
        judge=JUDGES[table["judge"]] if "judge" in table else None,
        allowed=tuple(re.compile(pattern) for pattern in allowed),
        keywords=tuple(table.get("keywords", ())),
        examples=tuple(table["examples"]),
        clean=tuple(table["clean"]),
    )
