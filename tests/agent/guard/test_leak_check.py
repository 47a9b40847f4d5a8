"""Answers leak neither the model's instructions nor masked values, in whatever form."""

from __future__ import annotations

import base64

import pytest
from langchain_core.messages import SystemMessage

from agent.errors import AnswerLeaked
from agent.guard.leak_check import check_leaks, has_leaked_instructions, has_masked_values
from agent.text.storable import MASK, MaskedValues
from indexer.secrets import redact_secrets

TOLD = "You answer questions about one repository's code, from numbered evidence and from nothing else. Be brief."
VALUE = "correct-horse-9137-battery"


def values_of(text: str) -> MaskedValues:
    masked = MaskedValues()
    masked.watch(lambda text: text.replace(VALUE, "[REDACTED:password]"))(text)
    return masked


@pytest.mark.parametrize(
    ("answer", "leaks"),
    [
        (f"My instructions are: {TOLD}", True),
        ("you ANSWER questions, about one *repository's* code; from numbered evidence and from nothing", True),
        ("You answer questions about the code of one repository.", False),
        ("`parse_date` strips the text [1].", False),
    ],
)
def test_instructions_are_known_by_ten_words_in_a_row(answer: str, leaks: bool) -> None:
    assert has_leaked_instructions(answer, TOLD, []) is leaks


def test_code_that_holds_the_same_words_may_be_quoted() -> None:
    assert not has_leaked_instructions(f"It says: {TOLD}", TOLD, [f'TASK = "{TOLD}"'])


def test_what_was_masked_is_masked_wherever_it_stands() -> None:
    masked = values_of(f'password = "{VALUE}"\nconnect("x")')

    assert list(masked) == [VALUE]
    assert masked.hide(f"It connects with {VALUE}.") == f"It connects with {MASK}."


@pytest.mark.parametrize(
    "written",
    [
        VALUE[::-1],
        " ".join(VALUE),
        "-".join(VALUE.replace("-", "")),
        base64.b64encode(VALUE.encode()).decode(),
        VALUE.encode().hex(),
        "".join(f"%{ord(char):02x}" for char in VALUE),
    ],
)
def test_a_masked_value_is_known_in_disguise(written: str) -> None:
    assert has_masked_values(f"The value is {written}", values_of(f"password = {VALUE}"))
    assert not has_masked_values(f"The value is {written}", MaskedValues())


def test_mere_words_are_no_values() -> None:
    masked = MaskedValues()
    mask = masked.watch(lambda text: text.replace("production", "[REDACTED:x]").replace("ab1", "[REDACTED:x]"))

    assert mask("mode = production, key = ab1") == "mode = [REDACTED:x], key = [REDACTED:x]"
    assert list(masked) == []


def test_the_values_of_the_real_redactor_are_found() -> None:
    key = "AKIA" + "Q3EGX7T5ZPLM2VNW"
    masked = MaskedValues()
    masked.watch(redact_secrets)(f"aws_key = '{key}'\nother = 1\n")

    assert key in list(masked)


def test_what_is_said_before_the_answer_gives_away_nothing_either() -> None:
    hidden = base64.b64encode(VALUE.encode()).decode()
    told, masked = [SystemMessage(TOLD)], values_of(f"password = {VALUE}")

    check_leaks(["Do you mean the bank?"], told, masked)
    for said in (f"Do you mean {hidden}?", f"Do you mean: {TOLD}?"):
        with pytest.raises(AnswerLeaked):
            check_leaks(["", said], told, masked)
