"""What a classifier may add to the verdict of the rules: it can have a question watched, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from agent.guard.heuristics import InjectionVerdict
from agent.ports import Deps

RULE = "classifier"


async def consult_classifier(verdict: InjectionVerdict, text: str, deps: Deps) -> InjectionVerdict:
    """Raise a verdict of `allow` to `watch` where the classifier finds an attack; any other one stands."""
    if verdict.name != "allow" or deps.classifier is None:
        return verdict
    result = await deps.classifier.classify(text)
    deps.emit("classified", result=result)
    return replace(verdict, name="watch", rules=(*verdict.rules, RULE)) if result == "suspect" else verdict
