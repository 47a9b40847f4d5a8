"""Drawings as messages: a picture with a list beside it, or its source, in which nothing of a name is markup."""

from __future__ import annotations

from bot.drawings.drawing_requests import DrawingRequest, draw
from bot.markdown.formatting import neutralize
from tests.fakes.code import FakeCode

SHOP = {
    "shop/a.py": "def pay():\n    return 1\n\n\ndef alone():\n    return 1\n",
    "shop/b.py": "from shop.a import pay\n\n\ndef order():\n    return pay()\n",
}


async def test_a_picture_goes_with_a_list_and_says_in_words_what_it_shows() -> None:
    content = await draw(FakeCode(SHOP), DrawingRequest(name="pay", subject="callers"))

    assert "- order calls pay" in content.text
    assert content.file is not None
    assert content.file.content.startswith(b"\x89PNG")
    assert content.file.alt == "Who calls pay in shop at c0ffeec:\n- order calls pay"


async def test_mermaid_is_a_code_block() -> None:
    content = await draw(FakeCode(SHOP), DrawingRequest(name="order", subject="callees", as_mermaid=True))

    assert content.text.startswith("```mermaid\ngraph LR\n")
    assert content.file is None


async def test_what_cannot_be_drawn_is_said() -> None:
    nobody = await draw(FakeCode(SHOP), DrawingRequest(name="no`body", subject="callers"))
    alone = await draw(FakeCode(SHOP), DrawingRequest(name="alone", subject="callers"))

    assert nobody.text == "`nobody` is not defined in `shop`."
    assert alone.text.startswith("Nothing to draw")
    assert nobody.file is alone.file is None


async def test_a_long_list_is_cut_to_what_a_message_takes_beside_its_picture() -> None:
    source = "from shop.a import pay\n\n\ndef a_caller_of_pay_{:060}():\n    pay()\n"
    callers = {f"shop/c{n}.py": source.format(n) for n in range(38)}

    content = await draw(FakeCode({**SHOP, **callers}), DrawingRequest(name="pay", subject="callers"))

    assert len(content.text) < 1_700
    assert "lines more, in the picture" in content.text
    assert content.file is not None
    assert len(content.file.alt) <= 1_000
    assert neutralize(content.text, ()).count("```") == 2
