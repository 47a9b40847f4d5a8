"""What a model that answers may call beside the tools that read: a plan, a question to the person, nothing to say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from pydantic import ValidationError

from agent.prompts.output_schemas import ClarifyOutput, ModelForm, PlanOutput
from agent.state import AgentState

MAKE_PLAN: Final = "make_plan"
ASK_PERSON: Final = "ask_person"
DECLINE: Final = "not_about_the_code"

_DESCRIPTIONS: Mapping[str, str] = {
    MAKE_PLAN: (
        "Have research done in steps before you answer. Only for a question that takes many calls in several parts of "
        "the code; for anything less call the other tools yourself."
    ),
    ASK_PERSON: (
        "Ask the person one short question. Only where the question could mean quite different things and neither the "
        "code nor the conversation can tell."
    ),
    DECLINE: "Say that the message is neither about the code nor about this conversation.",
}
_FORMS: Mapping[str, type[ModelForm]] = {MAKE_PLAN: PlanOutput, ASK_PERSON: ClarifyOutput, DECLINE: ModelForm}


def list_turn_tools(state: AgentState, *, can_ask: bool = True) -> list[Mapping[str, Any]]:
    """Return what may be called now: a plan is made once, and a person who can reply asked once."""
    names = [DECLINE]
    if not state.get("findings"):
        names.insert(0, MAKE_PLAN)
    if can_ask and not state.get("clarified"):
        names.insert(0, ASK_PERSON)
    return [
        {"name": name, "description": _DESCRIPTIONS[name], "parameters": _make_schema(_FORMS[name])} for name in names
    ]


def read_turn_call(
    calls: Sequence[Mapping[str, Any]], state: AgentState, *, can_ask: bool = True
) -> tuple[str, ModelForm] | None:
    """Return the first of the calls that changes the way of the turn, with its arguments; None where none can."""
    possible = {str(tool["name"]) for tool in list_turn_tools(state, can_ask=can_ask)}
    for call in calls:
        if (name := str(call["name"])) in possible:
            try:
                return name, _FORMS[name].model_validate(call["args"])
            except ValidationError:
                continue
    return None


def is_turn_tool(name: str) -> bool:
    """Whether the tool of that name changes the way of the turn."""
    return name in _FORMS


@cache
def _make_schema(form: type[ModelForm]) -> Mapping[str, Any]:
    """Describe a form, once: to work it out takes longer than most lookups."""
    schema = form.model_json_schema()
    properties = {
        name: {key: value for key, value in about.items() if key not in {"title", "default"}}
        for name, about in schema.get("properties", {}).items()
    }
    return {"type": "object", "properties": properties, "required": schema.get("required", [])}
