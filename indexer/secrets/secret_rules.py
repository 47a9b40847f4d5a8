"""Reads the rules for finding secrets, which are data in gitleaks' form."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import re2

from indexer.secrets.secret_values import (
    is_chosen,
    is_literal,
    is_path_password,
    is_random,
    is_url_password,
    is_value,
    measure_entropy,
)

Judge = Callable[[str], bool]

JUDGES: Mapping[str, Judge] = MappingProxyType(
    {
        "chosen": is_chosen,
        "literal": is_literal,
        "random": is_random,
        "value": is_value,
        "url-password": is_url_password,
        "path-password": is_path_password,
    }
)
_TAIL = "[A-Za-z0-9_.-]*"  # of a name, behind its noun
_SHORT = r"(?:\b|_)(?i:pass|pw|psk)\b"  # a name that is a password's only next to a user
_FILE = Path(__file__).with_name("secret_rules.toml")


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """A form of secret: an RE2 pattern with further conditions. Its matching group is masked, or the whole match."""

    id: str
    label: str
    regex: str
    grouped: bool
    entropy: float
    judge: Judge | None
    allowed: tuple[re.Pattern[str], ...]
    keywords: tuple[str, ...]
    examples: tuple[str, ...]
    clean: tuple[str, ...]

    def begins(self, word: str) -> bool:
        """Whether the secret is a token that begins with a keyword of this rule."""
        return self.judge is None and not self.grouped and len(word) > 2 and " " not in word and "." not in word

    def is_secret(self, value: str) -> bool:
        """Whether the pattern's match is a secret."""
        if any(pattern.search(value) for pattern in self.allowed):
            return False
        if self.entropy and measure_entropy(value) < self.entropy:
            return False
        return self.judge is None or self.judge(value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """The form of a value after a name: an RE2 pattern that starts at the end of the name."""

    id: str
    regex: str
    examples: tuple[str, ...]
    clean: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """All rules, the surest first, and the reader of a value after a name: `worth` finds candidates."""

    rules: tuple[Rule, ...]
    forms: tuple[Form, ...]
    worth: str
    named: str

    def list_forms(self) -> tuple[str, ...]:
        """Name the form of each group of the pattern `named`; the first groups belong to the name."""
        groups = [form.id for form in self.forms for _ in range(re2.compile(form.regex).groups)]
        return ("", "", "", *groups)


def load_rules() -> Rules:
    """Read the rules that come with citebot."""
    with _FILE.open("rb") as file:
        tables = tomllib.load(file)
    names = tables["names"]
    forms = tuple(
        Form(
            id=table["id"],
            regex=table["regex"].replace("<<quoted>>", names["quoted"]),
            examples=tuple(table["examples"]),
            clean=tuple(table["clean"]),
        )
        for table in tables["forms"]
    )
    return Rules(
        rules=tuple(_read_rule(table) for table in tables["rules"]),
        forms=forms,
        worth=rf"{names['password']}|{_SHORT}|{names['token']}{_TAIL}(?:{names['worth']})",
        named=rf"(?:({names['password']})|{names['token']})({_TAIL})(?:{'|'.join(form.regex for form in forms)})",
    )


def _read_rule(table: Mapping[str, Any]) -> Rule:
    allowed = [pattern for each in table.get("allowlists", ()) for pattern in each["regexes"]]
    return Rule(
        id=table["id"],
        label=table.get("tags", [table["id"]])[0],
        regex=table["regex"],
        grouped="secretGroup" in table,
        entropy=table.get("entropy", 0.0),
        judge=JUDGES[table["judge"]] if "judge" in table else None,
        allowed=tuple(re.compile(pattern) for pattern in allowed),
        keywords=tuple(table.get("keywords", ())),
        examples=tuple(table["examples"]),
        clean=tuple(table["clean"]),
    )
