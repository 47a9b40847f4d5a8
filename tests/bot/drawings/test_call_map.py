"""Maps of calls: who calls a name over several steps, and what is folded where there is too much."""

from __future__ import annotations

from bot.drawings.call_map import MAX_BOXES, map_calls
from tests.fakes.code import FakeCode

CHAIN = {
    "shop/a.py": "def pay():\n    return 1\n\n\ndef again():\n    return again()\n",
    "shop/b.py": "from shop.a import pay\n\n\ndef order():\n    return pay()\n",
    "shop/c.py": "from shop.b import order\n\n\ndef handle():\n    return order()\n\n\nhandle()\n",
    "tests/test_a.py": "from shop.a import pay\n\n\ndef test_pay():\n    assert pay() == 1\n",
}


async def test_callers_are_followed_over_several_steps() -> None:
    flow = await map_calls(FakeCode(CHAIN), "pay", "callers")

    assert flow is not None
    assert sorted(flow.to_text().split("\n")[1:]) == [
        "- c.py calls handle", "- handle calls order", "- order calls pay", "- test_pay calls pay",
    ]  # fmt: skip
    assert [box.label for box in flow.boxes] == ["c.py", "handle", "test_pay", "order", "pay"]
    assert flow.boxes[-1].look == "main"
    assert flow.boxes[-1].note == "shop/a.py:1"


async def test_callees_are_followed_the_other_way() -> None:
    flow = await map_calls(FakeCode(CHAIN), "handle", "callees")

    assert flow is not None
    assert flow.to_text().split("\n")[1:] == ["- handle calls order", "- order calls pay"]


async def test_what_calls_itself_says_so() -> None:
    flow = await map_calls(FakeCode(CHAIN), "again", "callers")

    assert flow is not None
    assert flow.lines == []
    assert flow.boxes[0].note.endswith("calls itself")


async def test_an_unknown_name_has_no_map() -> None:
    assert await map_calls(FakeCode(CHAIN), "nobody", "callers") is None


async def test_too_many_callers_are_folded_and_counted_tests_first() -> None:
    callers = {f"shop/c{n:03}.py": f"from shop.a import pay\n\n\ndef f{n}():\n    pay()\n" for n in range(30)}
    tests = {f"tests/test_c{n:03}.py": f"from shop.a import pay\n\n\ndef t{n}():\n    pay()\n" for n in range(100)}

    flow = await map_calls(FakeCode({**tests, **callers, "shop/a.py": CHAIN["shop/a.py"]}), "pay", "callers")

    assert flow is not None
    assert len(flow.boxes) == MAX_BOXES
    labels = {box.label for box in flow.boxes}
    assert {f"f{n}" for n in range(30)} <= labels
    assert "92 more" in labels
    assert [box.look for box in flow.boxes].count("folded") == 1
