"""The rules for secrets: each masks its examples and leaves what looks alike, and nothing random leaks."""

from __future__ import annotations

import random
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.secrets import redact_secrets
from indexer.secrets.randomness import measure_surprise
from indexer.secrets.secret_rules import JUDGES, Rule, load_rules
from indexer.secrets.secret_values import is_placeholder, is_random, is_reference
from tests.fakes.secret_forms import ALPHABETS, FORMS, Form, draw_values, leaks

_ALNUM = string.ascii_letters + string.digits
_DRAWN = {
    "alnum": _ALNUM,
    "base64": _ALNUM + "+/",
    "digits": string.digits,
    "hex": "0123456789abcdef",
    "letters": string.ascii_letters,
    "upper": string.ascii_uppercase + "234567",
}
RULES = load_rules().rules


def draw(text: str, seed: int) -> tuple[str, list[str]]:
    """Fill `<hex 32>` and the like by lot; return the text and what was drawn."""
    drawn: list[str] = []
    chosen = random.Random(f"{text}{seed}")

    def fill(found: re.Match[str]) -> str:
        drawn.append("".join(chosen.choices(_DRAWN[found[1]], k=int(found[2]))))
        return drawn[-1]

    return re.sub(rf"<({'|'.join(_DRAWN)}) (\d+)>", fill, text), drawn


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_masks_its_examples_and_leaves_what_looks_alike(rule: Rule) -> None:
    filled = [draw(text, seed) for text in rule.examples for seed in range(3)]
    masked = [(redact_secrets(f"{example}\n"), example, max(drawn, key=len)) for example, drawn in filled]
    clean = [draw(text, 0)[0] for text in rule.clean]

    assert [text for text, example, drawn in masked if "[REDACTED:" not in text or drawn in text] == []
    assert [text.count("\n") - 1 for text, *_ in masked] == [example.count("\n") for example, _ in filled]
    assert [redact_secrets(text) for text in clean] == clean
    keywords = rule.keywords or ("",)
    assert all(any(keyword.lower() in example.lower() for keyword in keywords) for example, _ in filled)


def test_every_rule_has_an_id_examples_and_a_judge_that_exists() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert all(rule.examples and rule.clean for rule in RULES)
    assert {rule.judge for rule in RULES if rule.judge} == set(JUDGES.values())


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.exhaustive
def test_hardly_a_random_value_leaks_in_any_form(form: Form) -> None:
    values = [value for alphabet in ALPHABETS for value in draw_values(form, alphabet, 53)]
    leaked = [value for value in values if leaks(value, redact_secrets(form.fill(value)))]
    assert len(leaked) <= 0.04 * len(values), leaked[:5]  # of few values; `benchmarks.secrets` draws ten thousand


@given(form=st.sampled_from(FORMS), alphabet=st.sampled_from(sorted(ALPHABETS)), seed=st.integers(0, 1_000))
def test_masking_a_form_twice_changes_nothing_and_keeps_its_lines(form: Form, alphabet: str, seed: int) -> None:
    text = form.fill(next(draw_values(form, alphabet, 1, seed)))
    masked = redact_secrets(text)
    assert redact_secrets(masked) == masked
    assert masked.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "value", ["kX9vq2LmZ4pR", "9f86d081884c7d65", "Zm9vYmFyYmF6cXV4", "q!7Zr@x9#Lm2$Vb", "AKJHGQWZXVBN3M5T"]
)
def test_what_was_drawn_by_lot_is_random(value: str) -> None:
    assert is_random(value)


@pytest.mark.parametrize(
    "value",
    [
        "correcthorsebattery1",
        "settings.api_token_v2",
        "ApiKeySettings2",
        "123456789012345",
        "2026-01-02T03:04:05",
        "abcdefghijklmnopqrstuvwxyz0123",
        "c->argv[index+2];",
        "getUserPassword(request)",
        "${DB_PASSWORD_2}",
        "https://example.org/oauth2/v1/token",
        "sha256:9f86d081884c7d659a2feaa0c55ad015",
        "^[a-zA-Z0-9]{8,32}$",
        "パスワードを入力してください1",
        "xxxxxxxx-xxxx-4xxx",
    ],
)
def test_words_numbers_expressions_and_references_are_not_random(value: str) -> None:
    assert not is_random(value)


def test_words_cost_less_than_what_was_drawn_by_lot() -> None:
    assert measure_surprise("read_configuration_file")[0] < 5 < measure_surprise("kX9vq2LmZ4pR")[0]
    assert measure_surprise("---") == (0.0, 0)


def test_a_placeholder_counts_in_short_values_only() -> None:
    assert is_placeholder("your-key-1")
    assert not is_placeholder("q8Zr4x9Lm2Vb" + "xxxx" + "kP3wT7" * 3)
    assert is_reference("%(password)s")
