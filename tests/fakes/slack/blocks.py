"""Block Kit: what a person reads in blocks, what can be pressed, and the sizes that Slack refuses."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from tests.fakes.loopback.wire import JSON
from tests.fakes.slack.errors import SlackError, invalid

MAX_BLOCKS, MAX_VIEW_BLOCKS = 50, 100
MAX_TEXT_IN_ALL = 12_000
# What a text of a block may hold, by the block's type and field.
MAX_TEXT = {("section", "text"): 3000, ("header", "text"): 150, ("markdown", "text"): 12_000}
MAX_ELEMENTS = {"context": 10, "actions": 25, "context_actions": 5}
KNOWN = {
    "actions", "alert", "call", "card", "carousel", "context", "context_actions", "divider", "file", "header", "image",
    "input", "markdown", "plan", "rich_text", "section", "table", "task_card", "video",
}  # fmt: skip


def text_of(blocks: list[JSON]) -> str:
    """All that a person reads, top to bottom, labels of buttons included."""
    return "\n".join(text for block in blocks for text in _texts(block))


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from _texts(item)
    elif isinstance(node, dict):
        for name, value in node.items():
            if name in {"text", "title", "output", "details"} and isinstance(value, str):
                yield value
            elif name not in {"accessibility_label", "confirm"}:
                yield from _texts(value)


def pressables(blocks: list[JSON]) -> Iterator[tuple[JSON, JSON]]:
    """Every interactive element with its block."""
    for block in blocks:
        elements = [*block.get("elements", []), block.get("accessory"), block.get("element")]
        for element in elements:
            if isinstance(element, dict) and "action_id" in element:
                yield block, element


def numbered(blocks: list[JSON]) -> list[JSON]:
    """Give every block and pressable element the id that Slack would make up for it."""
    for number, block in enumerate(blocks):
        block.setdefault("block_id", f"b{number}")
        for position, element in enumerate(block.get("elements", [])):
            if isinstance(element, dict) and element.get("type") in {"button", "feedback_buttons", "icon_button"}:
                element.setdefault("action_id", f"a{number}.{position}")
    return blocks


def check_blocks(blocks: list[JSON], *, most: int = MAX_BLOCKS) -> None:
    """Refuse what Slack refuses, by its error names."""
    if len(blocks) > most:
        raise SlackError("msg_blocks_too_many" if most == MAX_BLOCKS else "invalid_arguments")
    complaints = [f"{what} [json-pointer:/blocks/{at}]" for at, each in enumerate(blocks) for what in _complaints(each)]
    identities = [block["block_id"] for block in blocks if block.get("block_id")]
    if len(set(identities)) < len(identities):
        complaints.append("`block_id` already exists")
    if complaints:
        raise invalid("invalid_blocks", *complaints)
    if most == MAX_BLOCKS and sum(map(_measure, blocks)) > MAX_TEXT_IN_ALL:
        raise SlackError("msg_blocks_too_long")


def _measure(block: JSON) -> int:
    """How long a block is as Slack keeps it, which escapes three characters of Markdown."""
    text = text_of([block])
    return len(escape(text, quote=False)) if block.get("type") == "markdown" else len(text)


def _complaints(block: JSON) -> Iterator[str]:
    kind = block.get("type")
    if kind not in KNOWN:
        yield f"unsupported type: {kind}"
        return
    for (owner, name), most in MAX_TEXT.items():
        if owner == kind and name in block:
            yield from _text_complaints(block[name], most)
    if kind == "section":
        yield from _section_complaints(block)
    elements = block.get("elements", [])
    if len(elements) > MAX_ELEMENTS.get(kind, len(elements)):
        yield f"no more than {MAX_ELEMENTS[kind]} items allowed"
    if kind in MAX_ELEMENTS and not elements:
        yield "missing required field: elements"
    if len(block.get("block_id", "")) > 255:
        yield "must be less than 256 characters: block_id"
    for _, element in pressables([block]):
        yield from _element_complaints(element)


def _section_complaints(block: JSON) -> Iterator[str]:
    fields = block.get("fields", [])
    if "text" not in block and not fields:
        yield "must provide text or fields"
    if len(fields) > 10:
        yield "no more than 10 fields allowed"
    for each in fields:
        yield from _text_complaints(each, 2000)


def _text_complaints(text: Any, most: int) -> Iterator[str]:
    words = text.get("text", "") if isinstance(text, dict) else text
    if not isinstance(words, str) or not words:
        yield "must be more than 0 characters: text"
    elif len(words) > most:
        yield f"must be less than {most + 1} characters: text"


def _element_complaints(element: JSON) -> Iterator[str]:
    if len(element["action_id"]) > 255:
        yield "must be less than 256 characters: action_id"
    for button in (element, element.get("positive_button"), element.get("negative_button")):
        if not isinstance(button, dict):
            continue
        if "text" in button:
            yield from _text_complaints(button["text"], 75)
        if len(str(button.get("value", ""))) > 2000:
            yield "must be less than 2001 characters: value"
