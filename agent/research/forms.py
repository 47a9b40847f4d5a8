"""The forms that a model fills in during an investigation, and how little of them is believed."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from agent.text.storable import make_storable

LONGEST_STEP = 300
LONGEST_REASON = 300


class PlanOutput(BaseModel):
    """The steps that are still to be taken."""

    steps: list[str] = Field(description="Short research steps in order, each about one thing; at most eight.")
    tools: list[str] = Field(
        default_factory=list, description="Those of the tools listed that a step cannot do without; almost never any."
    )


class RefineryOutput(BaseModel):
    """Whether what was found is enough."""

    decision: Literal["CONTINUE", "FINISH"] = Field(description="FINISH when the question can be answered.")
    reason: str = Field(default="", description="One sentence.")
    plan_still_applies: bool = Field(default=True, description="Whether the remaining steps still make sense.")


def clean_steps(steps: list[str], *, known: frozenset[str], most: int) -> list[str]:
    """Return the steps worth taking: on one line, not empty, not taken before, no more than wanted."""
    lines = [" ".join(make_storable(step[:10_000]).split())[:LONGEST_STEP] for step in steps[:50]]
    return [line for line in dict.fromkeys(lines) if line and line.lower() not in known][:most]
