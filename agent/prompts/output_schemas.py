"""The structured outputs asked of models; their readers cut and check them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.state import AgentState
from agent.text.storable import make_storable
from indexer.types import SourceType

LONGEST_STEP = 300
LONGEST_REASON = 300
MAKE_PLAN: Final = "make_plan"
ASK_PERSON: Final = "ask_person"
DECLINE: Final = "not_about_the_code"
_DESCRIPTIONS: Mapping[str, str] = {
    MAKE_PLAN: (
        "Have research done in steps before you answer. Only for a question that takes many calls in several parts of "
        "the code; for anything less call the other tools yourself. At most once."
    ),
    ASK_PERSON: (
        "Ask the person one short question. Only where the question could mean quite different things and neither the "
        "code nor the conversation can tell. At most once."
    ),
    DECLINE: "Say that the message is neither about the code nor about this conversation.",
}


class ModelForm(BaseModel):
    """A form for a model to fill in, prepared at its first use."""

    model_config = ConfigDict(defer_build=True)


class SearchOutput(ModelForm):
    """One search of the code."""

    query: str = Field(description="A few words, or names as in the code.")
    source_types: list[SourceType] = Field(default_factory=list, description="Empty for all.")
    folders: list[str] = Field(default_factory=list, description="Path prefixes, only those listed; empty for all.")
    patterns: list[str] = Field(default_factory=list, description="Globs such as **/*.sql; empty for all.")
    reasoning: str = Field(default="", description="A few words.")


class CallOutput(ModelForm):
    """One call of a tool."""

    tool: str = Field(description="The name of a tool that is listed.")
    arguments: str = Field(default="{}", description="Its arguments as a JSON object.")


class RouterOutput(ModelForm):
    """The next step."""

    route: Literal["retrieve", "use_tool", "investigate", "generate", "clarify"]
    requests: list[SearchOutput] = Field(default_factory=list, description="For retrieve.")
    calls: list[CallOutput] = Field(default_factory=list, description="For use_tool.")
    clarification: str = Field(default="", description="For clarify: the question to the person.")
    reasoning: str = Field(default="", description="One short sentence.")


class GradeOutput(ModelForm):
    """The relevant results, and whether they suffice."""

    verdict: Literal["enough", "rewrite", "give_up"]
    relevant: list[int] = Field(default_factory=list, description="The numbers of the results that matter.")
    better_query: str = Field(default="", description="For rewrite.")


class ClaimVerdict(ModelForm):
    """Whether its lines support a claim."""

    claim: int = Field(description="The number of the claim.")
    verdict: Literal["supported", "partly", "not"]
    lines: Literal["A", "B"] = Field(default="A", description="The lines that were judged; B only where A do not do.")
    start: int = Field(default=0, description="For B: the first line that shows the claim.")
    end: int = Field(default=0, description="For B: the last one.")


class ReadingOutput(ModelForm):
    """The verdicts on all claims, one each."""

    verdicts: list[ClaimVerdict] = Field(default_factory=list)


class MendedSentence(ModelForm):
    """One rewritten sentence."""

    number: int = Field(description="The number of the sentence.")
    text: str = Field(default="", description="The sentence as it should be; empty to leave it out.")


class MendingOutput(ModelForm):
    """The unconfirmed sentences, one each."""

    sentences: list[MendedSentence] = Field(default_factory=list)


class IntentOutput(ModelForm):
    """The intent of a message."""

    intent: Literal["new_question", "follow_up_with_retrieval", "follow_up", "out_of_scope"]
    standalone: str = Field(default="", description="For follow_up_with_retrieval: the question by itself.")


class ClarifyOutput(ModelForm):
    """A question to the person."""

    question: str = Field(min_length=1, description="One short question.")


class PlanOutput(ModelForm):
    """The remaining steps."""

    steps: list[str] = Field(description="Short research steps in order, each about one thing; at most eight.")
    dependent: list[int] = Field(
        default_factory=list,
        description="The numbers of the steps that need what the steps before them find; all others are taken at once.",
    )
    tools: list[str] = Field(
        default_factory=list, description="Those of the tools listed that a step cannot do without; almost never any."
    )


class RefineryOutput(ModelForm):
    """Whether the findings suffice."""

    decision: Literal["CONTINUE", "FINISH"] = Field(description="FINISH when the question can be answered.")
    reason: str = Field(default="", description="One sentence.")
    plan_still_applies: bool = Field(default=True, description="Whether the remaining steps still make sense.")


def clean_steps(steps: list[str], *, known: frozenset[str], most: int) -> list[str]:
    """Return the useful steps: on one line, not empty, new, within the limit."""
    lines = [" ".join(make_storable(step[:10_000]).split())[:LONGEST_STEP] for step in steps[:50]]
    return [line for line in dict.fromkeys(lines) if line and line.lower() not in known][:most]


_FORMS: Mapping[str, type[ModelForm]] = {MAKE_PLAN: PlanOutput, ASK_PERSON: ClarifyOutput, DECLINE: ModelForm}


def list_turn_tools(*, can_ask: bool = True) -> list[Mapping[str, Any]]:
    """Return the routing calls: the same in all rounds of the turn, because prompts begin with them."""
    names = [ASK_PERSON, MAKE_PLAN, DECLINE] if can_ask else [MAKE_PLAN, DECLINE]
    return [
        {"name": name, "description": _DESCRIPTIONS[name], "parameters": make_schema(_FORMS[name])} for name in names
    ]


def read_turn_call(
    calls: Sequence[Mapping[str, Any]], state: AgentState, *, can_ask: bool = True
) -> tuple[str, ModelForm] | None:
    """Return the first of the calls that redirect the turn, with its arguments; None if none can.

    A plan is made once, and a person who can reply is asked once.
    """
    spent = {MAKE_PLAN: bool(state.get("findings")), ASK_PERSON: bool(state.get("clarified"))}
    possible = {str(tool["name"]) for tool in list_turn_tools(can_ask=can_ask) if not spent.get(str(tool["name"]))}
    for call in calls:
        if (name := str(call["name"])) in possible:
            try:
                return name, _FORMS[name].model_validate(call["args"])
            except ValidationError:
                continue
    return None


def is_turn_tool(name: str) -> bool:
    """Whether the tool of that name redirects the turn."""
    return name in _FORMS


@cache
def make_schema(form: type[BaseModel]) -> Mapping[str, Any]:
    """Describe a form or the arguments of a tool, once, because that takes longer than most lookups."""
    schema = form.model_json_schema()
    properties = {
        name: {key: value for key, value in about.items() if key != "title"}
        for name, about in schema.get("properties", {}).items()
    }
    return {"type": "object", "properties": properties, "required": schema.get("required", [])}
