"""What a family of attacks is: how it is recognised, where it counts, and how it is spoken of."""

# ruff: noqa: E501 - a pattern is read as one line, and breaking it would hide what it matches

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import re2

AnchorTable = Literal["questions", "evidence"]
Scope = Literal["orders", "addressed", "anywhere"]
Kind = Literal[
    "override",
    "prompt",
    "persona",
    "authority",
    "secrets",
    "sending",
    "tools",
    "people",
    "wording",
    "forgery",
    "riddle",
]

# How a kind is spoken of to the person who asked: what it is about, and never by which words it was noticed.
KINDS: dict[Kind, str] = {
    "override": "an order to set my instructions aside",
    "prompt": "an order to me to reveal my instructions",
    "persona": "an order to be somebody else, without my limits",
    "authority": "a claim of authority that I have no way to check",
    "secrets": "a request for secrets or files of the machine that I run on",
    "sending": "an order to send something out of this conversation",
    "tools": "an order to use tools in a way that nobody approved",
    "people": "a request about other people's conversations, or about what I tell them",
    "wording": "an order to say something whatever the code says",
    "forgery": "text in the form of my own instructions",
    "riddle": "an order in disguise",
}


_MEMORY = 32 << 20  # bytes that RE2 may keep for a pattern; with less it goes on more slowly


@dataclass(frozen=True, kw_only=True, slots=True)
class InjectionFamily:
    r"""One way to attack. `pattern` is RE2 and matches case-insensitively; `example` must match, `near_miss` must not.

    In a pattern `[^.?!\n]` stands for what does not end a sentence: a full stop within a file's name does not.

    What tells an attack from talk about code is whom it addresses. A family of `orders` counts in orders alone, one
    that is `addressed` names the bot itself and counts in questions too; neither counts in what a question quotes.
    Where `is_sure`, an order with no question beside it is refused; all others are watched.
    """

    name: str
    kind: Kind
    pattern: str
    example: str
    near_miss: str
    scope: Scope = "orders"
    is_sure: bool = False


@dataclass(frozen=True)
class Recogniser:
    """A family ready for use; its own pattern is compiled when a text may hold it, as most never are."""

    family: InjectionFamily
    source: str

    def is_match(self, text: str) -> bool:
        """Whether the text holds what the family describes."""
        return self.pattern.search(text) is not None

    @cached_property
    def pattern(self) -> Any:
        """The compiled pattern."""
        return re2.compile(self.source, _make_options())


def _make_options() -> Any:
    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    return options


class FamilySet:
    """Families looked for together: only where a text has a word that a pattern cannot do without, that is compiled."""

    def __init__(self, families: Sequence[InjectionFamily], table: AnchorTable) -> None:
        anchors = load_anchors()[table]
        self._recognisers = [(Recogniser(one, _make_source(one.pattern)), anchors[one.name]) for one in families]

    def find(self, text: str) -> list[Recogniser]:
        """Return the families that a text holds, in the order of their table."""
        lowered = text.lower()
        return [
            one
            for one, needs in self._recognisers
            if all(any(map(lowered.__contains__, words)) for words in needs) and one.is_match(text)
        ]


def _make_source(pattern: str) -> str:
    """Return a pattern as RE2 gets it; all letters of Unicode would take it milliseconds to compile."""
    return f"(?i){pattern}".replace(r"[^.?!\n]", r"(?:[^.?!\n]|\.\w)").replace(r"\pL", r"[^\s.,;:!?()]")


@cache
def load_anchors() -> Mapping[AnchorTable, Mapping[str, Sequence[Sequence[str]]]]:
    """Read of which words a text needs one each for a family; `python -m tests.agent.guard.anchors` derives them."""
    content = json.loads(Path(__file__).with_name("anchors.json").read_text(encoding="utf-8"))
    return {"questions": content["questions"], "evidence": content["evidence"]}


# The words that families are made of.

BEGINS = (
    r"(?:(?:^|\n|[,;:.…]\s|\b(?:and|then|now|please|just|but|also|instead|you|must|should|should\s+now|to|will|may|can|let's|kindly)\s+)"
    r"(?:(?:please|kindly|now|just|simply|first|also|to)\s+){0,3})"
)
DROP = (
    r"(?:ignore|disregard|forget|override|overwrite|overrule|bypass|neglect|discard|unlearn|abandon|suspend|dismiss"
    r"|(?:set|put|leave|push|lay)\s+aside|throw\s+(?:out|away)|pay\s+no\s+attention\s+to|(?:do\s+not|don'?t|never|no\s+longer|stop|quit|cease)\s+"
    r"(?:follow|obey|heed|apply|listen\s+to|adhere\s+to|comply\s+with|stick\s+to)(?:ing)?|(?:stop|cease)\s+(?:following|obeying|heeding|applying|listening\s+to))"
)
DROP_YOURS = (
    rf"(?:{DROP}|drop|skip|break|violate|lift|erase|reset|clear|wipe|cancel|delete|remove|change|replace|void|relax)"
)
CORE = r"(?:instructions?|prompts?|directives?|guidelines?|guardrails?|programming|directions?|system\s+(?:message|prompt|instructions?))"
ORDERS = (
    rf"(?:{CORE}|rules?|orders?|constraints?|restrictions?|limits?|limitations?|polic(?:y|ies)|safeguards?|filters?"
    r"|persona|training|configuration|principles?|checks?|safety\s+\w+)"
)
BEFORE = r"(?:previous|prior|earlier|preceding|foregoing|former|above|initial|original|system|past|existing)"
SHOW = (
    r"(?:reveal|show|print|output|display|repeat|tell|give|leak|dump|share|disclose|expose|recite|write|return|spell|translate"
    r"|summari[sz]e|list|describe|copy|quote|state|paste|read|echo|type|send|explain|provide|post|rewrite|paraphrase|encode|include)"
)
TOLD = r"(?:told|given|instructed|programmed|configured|trained|briefed|primed|prompted|set\s+up)"
HOST_PATH = (
    r"(?:/proc/(?:self|\d{1,7})\b|/etc/(?:passwd|shadow|sudoers|hosts)\b|~/\.(?:ssh|aws|netrc|kube|gnupg|docker|config)\b"
    r"|/root/|/home/\S|/var/run/secrets|\bid_rsa\b|(?:\.\.[/\\]){2,}\S{0,80}(?:etc|passwd|shadow|secret|\.env|\.ssh|key|credential|proc)|file://)"
)
ADDRESS = r"(?:https?://\S|www\.\S|\S{1,60}@\S{1,60}\.\w|\b[\w-]{1,40}\.(?:[\w-]{1,40}\.)?(?:com|net|org|io|dev|xyz|ru|cn|site)\b)"
REPLIES = r"(?:answers?|repl(?:y|ies)|responses?|messages?|outputs?|summar(?:y|ies))"
EVERYBODY = r"(?:@?everyone|@?everybody|@here|@channel|anyone|anybody|whoever|people|all\s+(?:users|members|people)|the\s+(?:whole|entire)\s+(?:channel|server|team|workspace)|<!(?:channel|here|everyone))"
