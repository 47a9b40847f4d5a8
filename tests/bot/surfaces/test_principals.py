"""Tokens: whose they are, and what is not taken for one."""

from __future__ import annotations

import pytest

from bot.access import AccessPolicy, AccessRule
from bot.settings import TokenTable
from bot.surfaces.principals import LONGEST_TOKEN, Tokens, hash_token, make_token

ANN, BEN = make_token(), make_token()


@pytest.fixture
def tokens() -> Tokens:
    people = {ANN: "slack:U1", BEN: "discord:22"}
    return Tokens([TokenTable(person=person, sha256=hash_token(token)) for token, person in people.items()])


def test_a_token_tells_whose_it_is(tokens: Tokens) -> None:
    ann, ben = tokens.find(ANN), tokens.find(BEN)

    assert ann is not None
    assert ben is not None
    assert (ann.platform, ann.person, ann.key) == ("slack", "U1", "slack:U1")
    assert ben.key == "discord:22"


@pytest.mark.parametrize(
    "token",
    ["", "x", ANN[:-1], ANN + " ", ANN.upper(), "é\ud800", hash_token(ANN), ANN * 99],
    ids=["empty", "short", "cut", "blank", "upper", "surrogate", "hash", "long"],
)
def test_nothing_else_is_taken_for_a_token(tokens: Tokens, token: str) -> None:
    assert tokens.find(token) is None


def test_a_token_that_would_be_cut_off_is_none() -> None:
    long = "x" * (LONGEST_TOKEN + 1)
    tokens = Tokens([TokenTable(person="slack:U1", sha256=hash_token(long[:LONGEST_TOKEN]))])

    assert tokens.find(long) is None
    assert tokens.find(long[:LONGEST_TOKEN]) is not None


def test_a_person_sees_what_they_see_in_a_direct_message(tokens: Tokens) -> None:
    rules = (
        AccessRule(repositories=("ann",), people=("slack:U1",)),
        AccessRule(repositories=("direct",), channels=("direct",)),
        AccessRule(repositories=("channel",), channels=("C1",)),
        AccessRule(repositories=("ben",), people=("discord:22",)),
    )
    ann = tokens.find(ANN)

    assert ann is not None
    assert AccessPolicy(rules=rules).list_visible(ann.write(), ["ann", "direct", "channel", "ben"]) == ("ann", "direct")
