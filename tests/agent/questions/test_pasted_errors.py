"""An error that somebody pastes is told from questions, and its message from what stands around it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.questions.literals import find_literals, is_message, parse_literal
from agent.questions.pasted_errors import parse_pasted_error


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("jinja2.exceptions.TemplateNotFound: index.html", "jinja2.exceptions.TemplateNotFound", "index.html"),
        ("sqlalchemy.exc.OperationalError: (x) no such table", "sqlalchemy.exc.OperationalError", "(x) no such table"),
        ("RuntimeError: Outside of context.\n\nUse 'with app.app_context()'.", "RuntimeError", "Outside of context."),
        ('what does "ShopError: cart is closed." mean?', "ShopError", "cart is closed."),
        ("Uncaught TypeError: x is not a function", "TypeError", "x is not a function"),
        ("Shop::NotFound: no such cart", "Shop.NotFound", "no such cart"),
        ("DoesNotExist: Check matching query does not exist.", "DoesNotExist", "Check matching query does not exist."),
        ("jq: error: Cannot iterate over null", "", "Cannot iterate over null"),
        ("shop.errors.CartClosed", "shop.errors.CartClosed", ""),
    ],
)
def test_an_error_is_read_with_its_name_and_its_message(text: str, name: str, message: str) -> None:
    error = parse_pasted_error(text)

    assert error is not None
    assert (error.name, error.message) == (name, message)


@pytest.mark.parametrize(
    "text",
    [
        "where is KeyError raised?",
        "TypeScript: how is it built?",
        "Note: this is it",
        "app.run",
        "why: how",
        "what does Session.send do: does it retry?",
        "ERROR shop: Internal Server Error: /cart",
    ],
)
def test_what_only_looks_like_an_error_is_none(text: str) -> None:
    assert parse_pasted_error(text) is None


@pytest.mark.parametrize(
    "order",
    [
        "trace how a request reaches the view",
        "explain the session cookie step by step",
        "describe the registration of blueprints here",
        "Add a new integration please",
        "walk me through the startup code",
        "please check how retries are counted",
        "zeige mir die Anmeldung im Code",
        "explique le fonctionnement du cache ici",
        "покажи мне код отправки писем",
    ],
)
def test_an_order_is_no_line_of_a_log(order: str) -> None:
    assert not is_message(order)


@pytest.mark.parametrize(
    "message",
    [
        "Could not build url for endpoint 'index'. Did you mean 'static' instead?",
        "Read failed after three tries",
        "Cannot call `save()` on a closed cart",
        'duplicate key value violates unique constraint "users name idx"',
        "is not a valid cart number",
    ],
)
def test_what_a_program_says_is_one_message_with_all_that_it_quotes(message: str) -> None:
    assert [one.text for one in find_literals(message) if one.is_message] == [message]


@pytest.mark.parametrize("question", ["Abhängigkeiten?", "プロジェクトの依存関係は？", "tests?"])
def test_a_question_of_one_word_is_no_text_to_find_as_it_stands(question: str) -> None:
    assert parse_literal(question) is None


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    error = parse_pasted_error(text)

    assert error is None or error.name or error.message
