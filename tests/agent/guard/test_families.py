"""The table of families: each catches its own and lets its neighbour pass, and all of them together miss nothing."""

from __future__ import annotations

import random

import pytest
import re2

from agent.guard.evidence_check import find_orders_in
from agent.guard.injection.families import KINDS, AnchorTable, FamilySet, InjectionFamily, load_anchors
from agent.guard.injection.indirect import INDIRECT
from agent.guard.injection.normalization import normalize_question
from agent.guard.injection.verdict import FAMILIES, judge_injection
from tests.agent.guard.anchors import derive
from tests.agent.guard.sets import PARTS, attacks, benign, payloads

QUESTION_FAMILIES = [pytest.param(family, id=family.name) for family in FAMILIES]
EVIDENCE_FAMILIES = [pytest.param(family, id=family.name) for family in INDIRECT]


@pytest.mark.parametrize("family", QUESTION_FAMILIES)
def test_a_family_catches_its_example_and_no_near_miss(family: InjectionFamily) -> None:
    assert family.name in judge_injection(normalize_question(family.example)).rules
    assert judge_injection(normalize_question(family.near_miss)).name == "allow"


@pytest.mark.parametrize("family", EVIDENCE_FAMILIES)
def test_a_family_of_the_evidence_flags_its_example_and_no_near_miss(family: InjectionFamily) -> None:
    assert family.name in {rule for flag in find_orders_in(family.example) for rule in flag.rules}
    assert find_orders_in(family.near_miss) == ()


@pytest.mark.parametrize("families", [FAMILIES, INDIRECT])
def test_names_are_unique_and_kinds_can_be_told_to_a_person(families: tuple[InjectionFamily, ...]) -> None:
    assert len({family.name for family in families}) == len(families)
    assert {family.kind for family in families} <= set(KINDS)


def test_the_words_that_are_looked_for_first_are_those_of_the_patterns() -> None:
    assert load_anchors() == derive()


@pytest.mark.parametrize(("families", "table"), [(FAMILIES, "questions"), (INDIRECT, "evidence")])
def test_looking_for_all_at_once_finds_what_each_finds_alone(
    families: tuple[InjectionFamily, ...], table: AnchorTable
) -> None:
    together = FamilySet(families, table)
    plain = [family.pattern.replace(r"[^.?!\n]", r"(?:[^.?!\n]|\.\w)") for family in families]
    alone = [re2.compile(f"(?i){pattern}".replace(r"\pL", r"[^\s.,;:!?()]")) for pattern in plain]
    texts = [each.text for part in PARTS for each in (*attacks(part), *benign(part))]
    texts += [text for part in PARTS for _, _, text in payloads(part)]
    chance = random.Random(7)
    texts += [" ".join(chance.choices(texts, k=20))[:6000] for _ in range(20)]

    for text in texts:
        found = {one.family.name for one in together.find(text)}
        assert found == {family.name for family, pattern in zip(families, alone, strict=True) if pattern.search(text)}
