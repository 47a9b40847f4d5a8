"""The families as data: whole and without dead words; and the language that their rules are written in."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from agent.guard.injection import families
from agent.guard.injection.families import SCOPES, parse_rules
from agent.guard.injection.lexicon import Lexicon

CONTENT = tomllib.loads(Path(families.__file__).with_name("families.toml").read_text(encoding="utf-8"))
WORDS = {
    "lead": "please",
    "drop": "ignore, olvid*, set aside",
    "core": "rules, 指令",
    "yours": "your",
    "code": "class",
    "domain": "example",
}


def find(rule: str, text: str) -> list[str]:
    lexicon = Lexicon(WORDS | {"=my": "my"}, {"url": r"https?://\S+"})
    (parsed,) = parse_rules(rule, lexicon.bits)
    return [text[start:end] for start, end in parsed.find(lexicon.read(text).marks)]


@pytest.mark.parametrize(
    ("rule", "text", "found"),
    [
        ("drop core", "now set aside all of the rules", ["set aside all of the rules"]),
        ("drop core", "Olvidé las 指令", ["Olvidé las 指令"]),
        ("drop core", "ignore it. The rules are here", []),
        ("drop core", "ignore what is one or two or three words from rules", []),
        ("drop .. core", "ignore what is one or two words from rules", ["ignore what is one or two words from rules"]),
        ("drop ... core", "ignore it. The rules", ["ignore it. The rules"]),
        ("drop ~ core", "ignore all of the rules", []),
        ("^drop core", "we ignore rules", []),
        ("^drop core", "please ignore rules", ["ignore rules"]),
        ("drop core $", "ignore rules.", ["ignore rules."]),
        ("drop core $", "ignore rules in the linter", []),
        ("drop core !code", "ignore rules of the class", []),
        ("yours|=my core", "my rules, your rules", ["my rules", "your rules"]),
        ("drop url", "ignore https://example.com/a.b?c", ["ignore https://example.com/a.b?c"]),
        ("drop core", "ignore_rules() in ignore/rules.py", []),
    ],
)  # fmt: skip
def test_a_rule_finds_its_concepts_in_their_order(rule: str, text: str, found: list[str]) -> None:
    assert find(rule, text) == found


def test_every_concept_has_words_and_every_rule_knows_its_concepts() -> None:
    rules = [
        line for one in CONTENT["families"].values() for scope in SCOPES for line in one.get(scope, "").split("\n")
    ]
    named = set(re.findall(r"(?<![=\w])[a-z]\w*", " ".join(rules)))
    concepts = {*CONTENT["words"], *CONTENT["shapes"]}

    assert named - {"colon", "lead"} == concepts - {"lead"}
    assert [rule for rule, times in Counter(filter(None, rules)).items() if times > 2] == []
