"""What a reading refutes is rewritten or withdrawn by the model that answered, once, and nothing else changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from agent.citations.citation_check import CORRECTED, UNVERIFIED
from agent.errors import ModelUnavailable
from agent.nodes.synthesis import check_citations
from agent.ports import Deps, NodeRuntime, TurnModels
from agent.state import to_citation
from indexer.types import Location
from tests.agent.conftest import SECRET, Told, redact
from tests.fakes.code import FakeCode
from tests.fakes.scripted_model import ScriptedModel
from tests.fakes.shop import SHOP

PARSE = to_citation(1, Location(path="shop/dates.py", start_line=6, end_line=8))
ANSWER = "It strips the text [1]. `parse_date` is signed with MD5 [1]. It raises `ValueError` [1]."
REFUTED = {"verdicts": [{"claim": 1, "verdict": "not"}]}


def mending(text: str, number: int = 1) -> Mapping[str, Any]:
    return {"sentences": [{"number": number, "text": text}]}


async def checked(answer: str, *lines: Any) -> tuple[str, ScriptedModel]:
    """What becomes of an answer that a reading refutes in part."""
    model = ScriptedModel({"check_citations": [REFUTED, *lines]})
    models = TurnModels(main=model, check=model)
    deps = Deps(code=FakeCode(SHOP), redact=redact, emit=Told(), models=models)
    state: Any = {"final_answer": answer, "answer_model": model.name, "citations": [PARSE], "shown": [PARSE]}
    return (await check_citations(state, NodeRuntime(deps)))["final_answer"], model


async def test_a_refuted_sentence_is_rewritten_in_its_place_with_its_marks() -> None:
    text, model = await checked(ANSWER, mending("`parse_date` reads it with `fromisoformat`."))

    assert text.startswith(ANSWER.replace("is signed with MD5", "reads it with `fromisoformat`"))
    assert f"{CORRECTED}: sentences that the cited lines did not show were rewritten or removed: 1." in text
    assert UNVERIFIED not in text
    assert "Lines of sentence 1" in str(model.asked[1][1][-1].text)


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        (ANSWER, "It strips the text [1]. It raises `ValueError` [1]."),
        (
            "It strips the text [1].\n- `parse_date` is signed with MD5 [1].\n- It raises",
            "It strips the text [1].\n- It raises",
        ),
    ],
)
async def test_a_sentence_that_cannot_be_saved_is_withdrawn(answer: str, left: str) -> None:
    text, _ = await checked(answer, mending(""))

    assert text.partition("\n\n")[0] == left


@pytest.mark.parametrize(
    "line",
    [
        ModelUnavailable("The provider is down."),
        mending("`parse_date` is signed with SHA-9."),  # no better
        mending("Something else.", number=7),
        {"sentences": []},
        mending("`parse_date` is signed with MD5."),  # the model insists
    ],
)
async def test_what_is_not_mended_is_marked(line: Any) -> None:
    text, _ = await checked(ANSWER, line)

    assert f"[1] {UNVERIFIED}." in text


async def test_what_the_model_writes_anew_is_cleaned_and_the_answer_is_never_emptied() -> None:
    evil = f"`parse_date` strips, says {SECRET} <!channel> [here](https://evil.example.com) [E9]."
    text, _ = await checked(ANSWER, mending(evil))
    alone, _ = await checked("`parse_date` is signed with MD5 [1].", mending(""))

    assert SECRET not in text
    assert "](" not in text.replace("`", "")
    assert alone.startswith(f"`parse_date` is signed with MD5 [1] {UNVERIFIED}.")


async def test_a_row_of_a_table_is_left_as_it_is() -> None:
    text, model = await checked("| a | b |\n|---|---|\n| `parse_date` | MD5 [1] |", mending("Anything."))

    assert f"| `parse_date` | MD5 [1] {UNVERIFIED} |" in text
    assert model.tasks == ["check_citations"]
