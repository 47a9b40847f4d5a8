"""The structured outputs asked of models; what they write is cut and checked by those who read it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from agent.text.storable import make_storable
from indexer.types import SourceType

LONGEST_STEP = 300
LONGEST_REASON = 300


class ModelForm(BaseModel):
    """A form for a model to fill in; it is made ready when a model is first asked to."""

    model_config = ConfigDict(defer_build=True)


class SearchOutput(ModelForm):
    """One search of the code."""

    query: str = Field(description="A few words, or names as they would stand in the code.")
    source_types: list[SourceType] = Field(default_factory=list, description="Empty for all.")
    folders: list[str] = Field(default_factory=list, description="Path prefixes, only those listed; empty for all.")
    patterns: list[str] = Field(default_factory=list, description="Globs such as **/*.sql; empty for all.")
    reasoning: str = Field(default="", description="A few words.")


class CallOutput(ModelForm):
    """One call of a tool."""

    tool: str = Field(description="The name of a tool that is listed.")
    arguments: str = Field(default="{}", description="Its arguments as a JSON object.")


class RouterOutput(ModelForm):
    """How to go on."""

    route: Literal["retrieve", "use_tool", "investigate", "generate", "clarify"]
    requests: list[SearchOutput] = Field(default_factory=list, description="For retrieve.")
    calls: list[CallOutput] = Field(default_factory=list, description="For use_tool.")
    clarification: str = Field(default="", description="For clarify: the question to the person.")
    reasoning: str = Field(default="", description="One short sentence.")


class GradeOutput(ModelForm):
    """Which results bear on the question, and whether they are enough."""

    verdict: Literal["enough", "rewrite", "give_up"]
    relevant: list[int] = Field(default_factory=list, description="The numbers of the results that matter.")
    better_query: str = Field(default="", description="For rewrite.")


class IntentOutput(ModelForm):
    """What a message wants."""

    intent: Literal["new_question", "follow_up_with_retrieval", "follow_up", "out_of_scope"]
    standalone: str = Field(default="", description="For follow_up_with_retrieval: the question by itself.")


class ClarifyOutput(ModelForm):
    """A question to the person."""

    question: str = Field(min_length=1, description="One short question.")


class PlanOutput(ModelForm):
    """The steps that are still to be taken."""

    steps: list[str] = Field(description="Short research steps in order, each about one thing; at most eight.")
    dependent: list[int] = Field(
        default_factory=list,
        description="The numbers of the steps that need what the steps before them find; all others are taken at once.",
    )
    tools: list[str] = Field(
        default_factory=list, description="Those of the tools listed that a step cannot do without; almost never any."
    )


class RefineryOutput(ModelForm):
    """Whether what was found is enough."""

    decision: Literal["CONTINUE", "FINISH"] = Field(description="FINISH when the question can be answered.")
    reason: str = Field(default="", description="One sentence.")
    plan_still_applies: bool = Field(default=True, description="Whether the remaining steps still make sense.")


def clean_steps(steps: list[str], *, known: frozenset[str], most: int) -> list[str]:
    """Return the steps worth taking: on one line, not empty, not taken before, no more than wanted."""
    lines = [" ".join(make_storable(step[:10_000]).split())[:LONGEST_STEP] for step in steps[:50]]
    return [line for line in dict.fromkeys(lines) if line and line.lower() not in known][:most]
