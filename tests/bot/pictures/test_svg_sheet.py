"""A drawing as SVG: well formed whatever the names are, and nothing of a name becomes markup."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

from hypothesis import example, given
from hypothesis import strategies as st

from bot.pictures.layered_layout import lay_out
from bot.pictures.svg_sheet import SvgSheet, measure_label

SVG = "{http://www.w3.org/2000/svg}"


def draw(names: list[str], *, note: str = "", link: str = "") -> ElementTree.Element:
    keys = [f"n{number}" for number in range(len(names))]
    widths = dict(zip(keys, map(measure_label, names), strict=True))
    lines = [*pairwise(keys), *([(keys[-1], keys[0])] if len(keys) > 1 else [])]
    layout = lay_out(widths, lines)
    sheet = SvgSheet(layout, widths)
    for line in lines:
        sheet.arrow(layout.lines[line], layout.nodes[line[1]], dashed=True)
    for key, name in zip(keys, names, strict=True):
        sheet.box(name, layout.nodes[key], widths[key], note=note, hint=name, link=link)
    return ElementTree.fromstring(sheet.svg(f"A graph of {names[0]}"))


@example(["\uffff"], "\ufffe")
@given(st.lists(st.text(max_size=30), min_size=1, max_size=5), st.text(max_size=20))
def test_any_names_are_text_and_never_markup(names: list[str], link: str) -> None:
    drawn = draw(names, note="1 ms", link=link)

    assert {element.tag for element in drawn.iter()} <= {
        SVG + tag for tag in ("svg", "g", "a", "rect", "text", "path", "title")
    }
    assert len(drawn.findall(f".//{SVG}rect")) == len(names)
    labels = [element.text or "" for element in drawn.iter(f"{SVG}text") if element.get("class") == "label"]
    assert [len(label) for label in labels] == [len(name.replace("\r\n", "\n")) for name in names]


def test_everything_lies_within_the_drawing() -> None:
    drawn = draw(["one", "two", "a much longer name"])
    width, height = map(float, drawn.attrib["viewBox"].split()[2:])

    for box in drawn.iter(f"{SVG}rect"):
        x, y, wide, high = (float(box.attrib[name]) for name in ("x", "y", "width", "height"))
        assert 0 <= x <= x + wide <= width
        assert 0 <= y <= y + high <= height
