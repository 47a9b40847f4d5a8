"""Buttons, menus and the texts of components, and the rules that Discord holds them to."""

from __future__ import annotations

from collections.abc import Iterator

from tests.fakes.discord.errors import DiscordError, invalid, too_long
from tests.fakes.loopback.wire import JSON

ROW, BUTTON, SELECT, TEXT = 1, 2, 3, 10
LINK_STYLE = 5
MAX_ROWS, MAX_IN_ROW = 5, 5


def walk(components: list[JSON]) -> Iterator[JSON]:
    """Give every component, the outer ones first."""
    for component in components:
        yield component
        yield from walk(component.get("components") or [])
        yield from walk([each for each in (component.get("accessory"), component.get("component")) if each])


def text_of(components: list[JSON]) -> str:
    """Read what the text components say."""
    return "\n".join(each["content"] for each in walk(components) if each["type"] == TEXT)


def buttons_of(components: list[JSON]) -> dict[str, str]:
    """Map the label of each button to its custom id, or to its address."""
    found = [each for each in walk(components) if each["type"] == BUTTON]
    return {_label(each): each.get("custom_id") or each.get("url", "") for each in found}


def pressable(components: list[JSON], button: str) -> JSON:
    """Find the component with this label or custom id that a person can use."""
    for each in walk(components):
        if button in {_label(each), each.get("custom_id")} and each.get("custom_id") and not each.get("disabled"):
            return each
    raise LookupError(f"nothing here can be pressed by the name {button!r}: {buttons_of(components)}")


def check_components(components: list[JSON]) -> None:
    """Refuse what Discord would refuse."""
    if len(components) > MAX_ROWS or any(each.get("type") != ROW for each in components):
        raise invalid("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 action rows.")
    seen: set[str] = set()
    for each in walk(components):
        if each["type"] == ROW:
            _check_row(each)
        elif each["type"] == BUTTON:
            _check_button(each)
        _check_id(each, seen)


def _check_row(row: JSON) -> None:
    inner = row.get("components") or []
    if not 1 <= len(inner) <= MAX_IN_ROW or (len(inner) > 1 and any(each["type"] != BUTTON for each in inner)):
        raise invalid("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")


def _check_button(button: JSON) -> None:
    if len(button.get("label") or "") > 80:
        raise too_long("components", 80)
    if not button.get("label") and not button.get("emoji"):
        raise invalid("components", "BUTTON_COMPONENT_REQUIRES_LABEL", "A label or an emoji is required.")
    if ("url" in button) != (button.get("style") == LINK_STYLE):
        raise invalid("components", "BUTTON_COMPONENT_INVALID_LINK", "A link button has a url, others have none.")


def _check_id(component: JSON, seen: set[str]) -> None:
    identity = component.get("custom_id")
    if identity is None:
        if component["type"] in {BUTTON, SELECT} and component.get("style") != LINK_STYLE:
            raise DiscordError(50035, errors={"components": {"_errors": [{"code": "BASE_TYPE_REQUIRED"}]}})
        return
    if not 1 <= len(identity) <= 100:
        raise too_long("components", 100, 1)
    if identity in seen:
        raise invalid("components", "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated")
    seen.add(identity)


def _label(component: JSON) -> str:
    return str(component.get("label") or (component.get("emoji") or {}).get("name") or component.get("custom_id", ""))
