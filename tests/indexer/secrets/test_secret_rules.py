"""The rules for secrets: each masks its examples and leaves what looks alike, and nothing random leaks."""

from __future__ import annotations

import base64
import random
import re
import string

import pytest

from indexer.secrets import redact_secrets
from indexer.secrets.secret_rules import JUDGES, Rule, load_rules
from indexer.secrets.secret_rules import Form as PlaceBehindName
from tests.fakes.human_passwords import FORMS as PASSWORD_FORMS
from tests.fakes.human_passwords import draw_passwords, shows
from tests.fakes.secret_forms import ALPHABETS, FORMS, draw_values, leaks

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
WRITTEN: list[Rule | PlaceBehindName] = [*RULES, *load_rules().forms]


def draw(text: str, seed: int) -> tuple[str, list[str]]:
    """Fill `<hex 32>` and similar by lot; return the text and what was drawn."""
    drawn: list[str] = []
    chosen = random.Random(f"{text}{seed}")

    def fill(found: re.Match[str]) -> str:
        drawn.append("".join(chosen.choices(_DRAWN[found[1]], k=int(found[2]))))
        return drawn[-1]

    return re.sub(rf"<({'|'.join(_DRAWN)}) (\d+)>", fill, text), drawn


def test_every_rule_masks_its_examples_and_leaves_what_looks_alike() -> None:
    filled = [draw(text, seed) for rule in WRITTEN for text in rule.examples for seed in range(3)]
    masked = [(redact_secrets(f"{example}\n"), example, max(drawn, key=len)) for example, drawn in filled]
    clean = [draw(text, 0)[0] for rule in WRITTEN for text in rule.clean]

    assert [example for text, example, drawn in masked if "[REDACTED:" not in text or drawn in text] == []
    assert [text.count("\n") - 1 for text, *_ in masked] == [example.count("\n") for example, _ in filled]
    assert [redact_secrets(text) for text in clean] == clean


def test_every_rule_has_an_id_examples_and_a_judge_that_exists() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert all(rule.examples and rule.clean for rule in RULES)
    assert all(
        any(keyword.lower() in text.lower() for keyword in rule.keywords or (text,))
        for rule in RULES
        for text in rule.examples
    )
    assert {rule.judge for rule in RULES if rule.judge} == set(JUDGES.values())


@pytest.mark.exhaustive
def test_hardly_a_random_value_leaks_in_any_form() -> None:
    drawn = {form: [value for alphabet in ALPHABETS for value in draw_values(form, alphabet, 53)] for form in FORMS}
    leaked = {
        form: [value for value in values if leaks(value, redact_secrets(form.fill(value)))]
        for form, values in drawn.items()
    }
    # Of few values; `benchmarks.secrets` draws ten thousand.
    assert {form.name: values[:5] for form, values in leaked.items() if len(values) > 0.04 * len(drawn[form])} == {}


def test_passwords_that_people_choose_are_shown_in_two_per_cent_of_cases_at_most() -> None:
    passwords = draw_passwords()
    shown = {
        (name, password)
        for name, form in PASSWORD_FORMS.items()
        for _, password in passwords
        if shows(password, form, redact_secrets(form.replace("{}", password)))
    }
    assert len(shown) <= 0.02 * len(PASSWORD_FORMS) * len(passwords), sorted(shown)[:20]


@pytest.mark.parametrize(
    "line",
    [
        "TOKEN_TTL = 3600",
        "password_timeout: 30s",
        'password: "required|string|min:8"',
        "password: ${{ secrets.PASSWORD }}",
        "token: string | null",
        "password = true",
        'getenv("REGION", "Frankfurt2024!")',
        "String token = tokens2.next();",
        "func summary(token *oauth2.Token) *Token {",
        'PASSWORD_ENCODER = "password-encoder"',
        "'password' => env('DB_PASSWORD', ''),",
        'newSecretKey("PBKDF2WithHmacSHA256", spec)',
        "password = user_input",
        "x = 1\npassword = other_value\nlogin(password)",
        "login(user=name, password=other_value)",
        "username: string\npassword: Hidden",
        "return {user: name, password: other}",
        "users:\n  username: Benutzer\n  password: wachtwoord",
        "connect(\n  user=user,\n  password=word_value\n)",
        'password = password.encode("latin1")',
        "my $pwd = CPAN::anycwd();",
        "users should pass `frame_images`",
        "the --username and --password options",
        'CHALLENGE_PASSWORD: "challengePassword",',
        "password: config.secret.value",
        "badCredentials=\\u6191\\u8B49\\u932F",
    ],
)
def test_what_is_no_password_behind_the_name_of_one_is_left(line: str) -> None:
    assert redact_secrets(f"{line}\n") == f"{line}\n"


@pytest.mark.parametrize(
    "text",
    [
        'token = "ghp_<alnum 18>" +\n    "<alnum 18>"\n',
        'const t = "ghp_<alnum 10>" + "<alnum 14>" + "<alnum 12>";\n',
        "my token is ghp_<alnum 20>\n<alnum 16> please\n",
        'k = ("xai-<alnum 40>"\n     "<alnum 40>")\n',
    ],
)
def test_a_token_in_pieces_is_masked_and_keeps_its_lines(text: str) -> None:
    written, drawn = draw(text, 1)
    masked = redact_secrets(written)
    assert [piece for piece in drawn if piece in masked] == []
    assert masked.count("\n") == written.count("\n")


@pytest.mark.parametrize("before", ["", "x", "user:", "token="])
def test_a_token_in_base64_is_masked(before: str) -> None:
    token, _ = draw("ghp_<alnum 36>", 1)
    encoded = base64.b64encode(f"{before}{token}".encode()).decode()
    assert redact_secrets(f"data: {encoded}\n") == "data: [REDACTED:token]\n"
