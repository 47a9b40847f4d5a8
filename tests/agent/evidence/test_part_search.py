"""A question of several parts: what counts as a part, and that each part has its say in what is found."""

from __future__ import annotations

import pytest

from agent.evidence.requests import request_search
from agent.evidence.search import MAX_PARTS, search_parts, split_question
from tests.fakes.code import FakeCode

FILES = {
    "shop/payment.py": "\n".join(["def pay_order_payment(card):\n    return card.charge_payment()\n"] * 40),
    "shop/stock.py": "def reserve_stock_shelf(item):\n    return item.shelf\n",
    "shop/mail.py": "def send_mail_receipt(customer):\n    return customer.mail\n",
}


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("How is the order paid?", ()),
        ("How is the order paid, and how does the mail get sent?", ()),  # too little is said of the mail
        (
            "How is the order paid with a card, and how is the receipt sent to the customer?",
            ("How is the order paid with a card", "how is the receipt sent to the customer"),
        ),
        (
            "Where do retries of failed payments begin? Which settings limit their number and delay?",
            ("Where do retries of failed payments begin", "Which settings limit their number and delay"),
        ),
    ],
)
def test_a_question_is_cut_where_it_asks_for_something_else(question: str, parts: tuple[str, ...]) -> None:
    assert split_question(question) == parts


def test_a_very_long_list_of_questions_is_searched_in_few_parts() -> None:
    question = " ".join(f"How does module{n} parse headers{n} of requests{n}?" for n in range(50))

    assert len(split_question(question)) == MAX_PARTS


async def test_each_part_finds_something_among_the_first() -> None:
    question = "How is a card charged for the payment? Where is stock reserved on a shelf? Who is sent a mail receipt?"

    found = await search_parts(FakeCode(FILES), request_search(question, reasoning="test"), limit=4)

    assert {hit.location.path for hit in found.hits} == set(FILES)
    assert len({hit.location for hit in found.hits}) == len(found.hits) == 4


async def test_a_question_of_one_part_is_searched_once() -> None:
    code = FakeCode(FILES)

    await search_parts(code, request_search("How is the order paid?", reasoning="test"), limit=10)

    assert len(code.searches) == 1
