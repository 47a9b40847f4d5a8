"""Reads questions about what is released and what runs in production."""

from __future__ import annotations

from collections.abc import Mapping

from indexer.text.linear_patterns import compile_pattern

_LONGEST = 300
_ENVIRONMENT = r"(?:the )?(?:production|prod|staging|preprod(?:uction)?|canary|live)"
_RELEASE = r"(?:the |a |any |our )?(?:latest |newest |last |current )?(?:release|version|tag)"
_PLACE = f"(?:{_ENVIRONMENT}|{_RELEASE})"
_SOMEWHERE = rf"(?: (?:in|on|to|with) {_PLACE})?"
_STATE = r"(?:released|deployed|shipped|rolled out|live|out|fixed)"
_WHEN = r"(?: yet| already| right now| now| today| currently)*"
# Whole questions: "in production code" is no environment.
_OF_RELEASE = r"(?:in |since |with |from )?(?:which|what) (?:releases?|versions?|tags?)"
_FORMS = (
    rf"(?:is|are|was|were|has|have|did|does) (?P<what>.+?)(?: been)?{_WHEN} {_STATE}{_SOMEWHERE}{_WHEN}",
    rf"(?:is|are|was|were) (?P<what>.+?){_WHEN} (?:running )?(?:in|on|part of) {_PLACE}{_WHEN}",
    rf"(?:does|do) {_PLACE} (?:have|run|contain|include) (?P<what>.+?){_WHEN}",
    rf"{_OF_RELEASE} (?:first )?(?:has|have|had|contains?|includes?|ships?|shipped|got) (?P<what>.+?)",
    rf"{_OF_RELEASE} (?:is|are|was|were) (?P<what>.+?) (?:{_STATE}|in|part of|included|contained)",
)
_SHIPPED = tuple(compile_pattern(f"(?i){form}[?.! ]*") for form in _FORMS)
_RUNNING = compile_pattern(
    rf"(?i)(?:what|which)(?:'s| (?:version|commit|release|tag|code))?(?: (?:is|are|runs?|do we run)){{0,2}}"
    rf"(?: (?:running|deployed|live))? (?:in|on|to) {_ENVIRONMENT}{_WHEN}[?.! ]*"
    rf"|(?:is|how far is) {_ENVIRONMENT} (?:up to date|up-to-date|current|behind){_WHEN}[?.! ]*"
)
_COMMIT = compile_pattern(r"(?i)(?:the )?(?:commit )?`?(?P<commit>[0-9a-f]{7,40})`?")
_CHANGE = r"(?:bug ?fix|fix|change|commit|patch|pr|pull request|merge)"
_FIX_BEFORE = compile_pattern(rf"(?i)(?:the |our |my )?{_CHANGE}(?: (?:of|for|to|in|that|with|on|which))+ (?P<rest>.+)")
_FIX_BEHIND = compile_pattern(rf"(?i)(?:the |our |my )?(?P<rest>.+?) {_CHANGE}")
_FIXED = compile_pattern(r"(?i).*\bfixed\b.*")


def read_asked_release(question: str) -> Mapping[str, str] | None:
    """Return the subject of a question about releases or environments, by kind; None for any other question.

    A `commit` is a hash, a `change` the words of one, a `name` may be anything in the code; without them, the question
    is about the environments.
    """
    text = " ".join(question.split())
    if len(text) > _LONGEST:
        return None
    if _RUNNING.fullmatch(text):
        return {"running": "yes"}
    found = next((one for form in _SHIPPED if (one := form.fullmatch(text)) is not None), None)
    if found is None:
        return None
    what = found["what"].strip(" `'\"")
    if commit := _COMMIT.fullmatch(what):
        return {"commit": commit["commit"].lower()}
    change = _FIX_BEFORE.fullmatch(what) or _FIX_BEHIND.fullmatch(what)
    if change is not None or _FIXED.fullmatch(text):
        return {"change": change["rest"] if change is not None else what}
    return {"name": what}
