"""A secret in a model's answer is never shown, however the answer is cut into pieces on its way."""

from __future__ import annotations

import re

import pytest

from agent.ports import Deps
from agent.prompts.model_text import CitationParser, StreamSanitizer
from indexer.secrets import redact_secrets
from tests.agent.conftest import Told
from tests.fakes.code import FakeCode
from tests.fakes.secret_forms import FORMS, Form, draw_values, leaks

KEY_LINE = "MIIEowIBAAKCAQEA7Zr4x9Lm2VbQkP3wT7h2RuC8pMx4EjS6qTa7WdK3oGi5V9nQ"
BEGIN, END = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"


def stream(pieces: list[str]) -> tuple[str, str]:
    """Write an answer in pieces; return all that was ever shown, and what it came to."""
    told = Told()
    scribe = StreamSanitizer(
        Deps(code=FakeCode({}), redact=redact_secrets, emit=told), CitationParser([], redact_secrets)
    )
    for piece in pieces:
        scribe.write(piece)
    answer = scribe.finish()
    resets = [payload["text"] for kind, payload in told.events if kind == "reset"]
    return "\n".join([told.text(), *resets, answer]), answer


def cut_everywhere(text: str) -> list[list[str]]:
    return [*([text[:at], text[at:]] for at in range(1, len(text))), list(text), re.findall(r"\S+\s*", text)]


@pytest.mark.parametrize("form", FORMS[::8], ids=lambda form: form.name)
def test_no_cut_of_an_answer_shows_a_secret(form: Form) -> None:
    value = next(draw_values(form, "alnum", 12))
    fence = "```\n" if FORMS.index(form) % 16 else ""
    for pieces in cut_everywhere(f"Here you are:\n\n{fence}{form.fill(value)}{fence}\nThat is all of it.\n"):
        shown, answer = stream(pieces)
        assert not leaks(value, shown), pieces
        assert "That is all of it." in answer


@pytest.mark.parametrize(("fence", "indent"), [("", ""), ("", "# "), ("```\n", ""), ("```\n", "    ")])
def test_no_cut_of_an_answer_shows_a_line_of_a_private_key(fence: str, indent: str) -> None:
    key = "\n".join(indent + line for line in (BEGIN, KEY_LINE, KEY_LINE, "0aB9xQ7pLm==", END))
    for pieces in cut_everywhere(f"Here it is:\n\n{fence}{key}\n{fence}\nThat is all of it.\n"):
        shown, answer = stream(pieces)
        assert not leaks(KEY_LINE, shown), pieces
        assert "0aB9xQ7pLm" not in shown
        assert "That is all of it." in answer


def test_an_answer_about_the_markers_of_keys_goes_on_after_them() -> None:
    told = Told()
    scribe = StreamSanitizer(
        Deps(code=FakeCode({}), redact=redact_secrets, emit=told), CitationParser([], redact_secrets)
    )

    scribe.write(
        "A key begins with\n-----BEGIN PRIVATE KEY-----\nand so on.\n\nThis is\nread by `load`.\nThen more.\nAnd "
    )

    assert "read by `load`" in told.text()
