"""An error that somebody pastes is told from questions, and its message from what stands around it."""

from __future__ import annotations

import pytest

from agent.questions.literals import parse_literal
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
    assert (error.name, next(iter(error.texts), "")) == (name, message)


@pytest.mark.parametrize(
    "text",
    [
        "where is KeyError raised?",
        "TypeScript: how is it built?",
        "app.run",
        "why: how",
        "what does Session.send do: does it retry?",
        "who calls send?",
        "trace how a request reaches the view",
        "zeige mir die Anmeldung im Code",
        "покажи мне код отправки писем",
    ],
)
def test_what_only_looks_like_an_error_is_none(text: str) -> None:
    assert parse_pasted_error(text) is None


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-03 14:02:11,532 - shop.worker - ERROR - {}",
        "WARNING:shop.views:{}",
        "2026-11-03 14:02:11.532 ERROR 4711 --- [nio-8080-exec-3] c.e.s.CartService : Request failed: {}",
        "ERROR com.example.Carts: {}",
        "E1103 14:02:11.532123    4711 server.go:88] {}",
        "2026/11/03 14:02:11 main.go:42: {}",
        'time=2026-11-03T14:02:11Z level=error msg="request failed" err="{}" status=500',
        '{{"level": "error", "msg": "request failed", "cause": {{"text": "upstream: {}"}}}}',
        "<34>Nov  3 14:02:11 web-2 shop[4711]: {}",
        "worker-1  | 2026-11-03T14:02:11.532Z ERROR job 17 failed: {}",
        "[03-Nov-2026 14:02:11 UTC] PHP Fatal error:  {} in /x.php on line 3",
        "E, [2026-11-03T14:02:11.532123 #4711] ERROR -- : {}",
        "[2026-11-03 14:02:11 +0000] [7] [ERROR] {}",
        "[error] 12#12: *3 {}, client: 10.0.0.7",
        "src/carts.c:12:5: error: {}",
        "since the deploy: 2026-11-03 14:02:11 ERROR worker: {}  <- anybody seen this before?",
        "staging is broken\n2026-11-03 14:02:10 INFO worker: started\n2026-11-03 14:02:11 ERROR worker: {}\nany idea?",
    ],
)
def test_the_message_of_a_log_line_is_told_from_what_stands_around_it(line: str) -> None:
    error = parse_pasted_error(line.format("no such cart 17"))

    assert error is not None
    assert error.is_evident
    assert "no such cart 17" in {text.removesuffix(" in /x.php on line 3") for text in error.texts}


@pytest.mark.parametrize(
    "text", ["no such cart here", "no such cart here <- what is that?", 'why "no such cart here"?']
)
def test_what_only_the_code_can_tell_to_be_a_message_is_not_said_to_be_one(text: str) -> None:
    error = parse_pasted_error(text)

    assert error is not None
    assert not error.is_evident
    assert "no such cart here" in error.texts


def test_a_code_of_an_error_is_a_message_of_one_word() -> None:
    error = parse_pasted_error("2026-11-03 14:02:11 ERROR worker: SHOP_ERR_CART_CLOSED")

    assert error is not None
    assert error.texts == ("SHOP_ERR_CART_CLOSED",)


def test_the_last_error_of_a_long_log_is_read() -> None:
    log = [f"2026-11-03 14:02:11 INFO worker: handled request {number}" for number in range(4_000)]
    log[3_000] = "2026-11-03 14:02:11 ERROR worker: no such cart 17"

    error = parse_pasted_error("\n".join(log))

    assert error is not None
    assert error.texts == ("no such cart 17",)


@pytest.mark.parametrize("question", ["Abhängigkeiten?", "プロジェクトの依存関係は？", "tests?"])
def test_a_question_of_one_word_is_no_text_to_find_as_it_stands(question: str) -> None:
    assert parse_literal(question) is None
