"""Chat models for the benchmark of answers: scripted ones, and a watch over what any model is sent."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult, LLMResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool

from agent.llm.providers import ModelSpec, Sampling
from agent.questions.mentions import find_mentions
from agent.questions.terms import find_content_terms, match_terms
from benchmarks.prefixes import measure_prefixes

MAX_NAMES = 3  # that the scripted model looks up in its one round
MAX_MISSING = 6  # words of the question that it searches for when nothing shown has them
_HEADING = re.compile(r"\[(E\d{1,4})\] ([^\s:]+)")
_SUBJECT = re.compile(r"\[E\d{1,4}\] (\S+) lines \S+ \([a-z ]{0,40}?([\w.:]{2,100})(?:; continues)?\)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{3,60}")
_DEFINED = re.compile(r"\b(?:def|class|function|func|fn|type|struct|interface|module)\s+(?:\([^)\n]{0,80}\)\s*)?(\w+)")
_CITED = re.compile(r"[\[(\u3010]E\d{1,4}")


@dataclass(kw_only=True, slots=True)
class Call:
    """One call of a model: what it was sent, what it wrote, and what that cost."""

    messages: Sequence[BaseMessage]
    began: float
    tools: Sequence[Mapping[str, Any]] = ()
    written: str = ""
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(slots=True)
class ModelWatch(BaseCallbackHandler):
    """Remembers every call of the models that it is given to."""

    calls: dict[UUID, Call] = field(default_factory=dict)

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **more: Any
    ) -> None:
        """Remember what a model is sent."""
        tools = (more.get("invocation_params") or {}).get("tools") or ()
        self.calls[run_id] = Call(messages=messages[0], tools=tools, began=time.perf_counter())

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        """Remember what it wrote; where the provider does not count tokens, four characters are one."""
        call, generation = self.calls[run_id], response.generations[0][0]
        message = generation.message if isinstance(generation, ChatGeneration) else AIMessage(generation.text)
        call.written = str(message.text)
        usage = message.usage_metadata if isinstance(message, AIMessage) else None
        sent = sum(len(str(each.text)) for each in call.messages)
        call.input_tokens = usage["input_tokens"] if usage else sent // 4
        call.output_tokens = usage["output_tokens"] if usage else len(call.written) // 4

    def list_texts(self) -> list[str]:
        """List what was sent as data, each text once, in the order in which it was sent."""
        messages = (message for call in self.calls.values() for message in call.messages)
        return list(dict.fromkeys(str(message.text) for message in messages if message.type in {"human", "tool"}))

    def measure_prefix(self) -> float | None:
        """Return the share of the second call that the first begins with; None if there is no second."""
        requests = [
            {"messages": convert_to_openai_messages(call.messages), "tools": call.tools} for call in self.calls.values()
        ]
        return next(iter(measure_prefixes(requests)), None)

    def count_citations(self) -> int:
        """Count the citations that the model wrote."""
        return sum(len(_CITED.findall(call.written)) for call in self.calls.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchedSpec(ModelSpec):
    """A model that can be built, and is watched from then on."""

    make: Callable[[Sampling], BaseChatModel]
    watch: ModelWatch

    def build(self, sampling: Sampling) -> BaseChatModel:
        """Build the model."""
        model = self.make(sampling)
        model.callbacks = [self.watch]
        return model


class ScriptedChat(BaseChatModel):
    """Answers each question the same way: asks for nothing, or first makes one round of tool calls; then it cites.

    The round is what a careful reader would ask for who knows nothing but the question and what is shown: who calls the
    function or class that the question is most about, what that calls, where else it is named, where the names are
    defined that the lines about it use, and the words of the question that nothing shown has.
    """

    question: str
    asks: bool = False

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        """Offer tools, or the form that is to be filled in."""
        offered = [convert_to_openai_tool(tool) for tool in tools]
        if "ls_structured_output_format" in kwargs:
            return self.bind(form=offered[0]["function"]["name"])
        return self.bind(tools=offered)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        *,
        form: str = "",
        tools: Sequence[Mapping[str, Any]] = (),
        **_: Any,
    ) -> ChatResult:
        offered = [tool["function"]["name"] for tool in tools]
        shown = "\n".join(str(message.text) for message in messages if message.type in {"human", "tool"})
        if form:
            reply = AIMessage("", tool_calls=[_make_call(form, self._fill(form, shown))])
        elif self.asks and offered and not any(message.type in {"ai", "tool"} for message in messages):
            calls = self._choose_calls(shown, offered)
            reply = AIMessage("", tool_calls=[_make_call(*call, number=at) for at, call in enumerate(calls, 1)])
        else:
            reply = AIMessage(_write_answer(shown))
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def _fill(self, form: str, shown: str) -> Mapping[str, Any]:
        filled: Mapping[str, Mapping[str, Any]] = {
            "IntentOutput": {"intent": "new_question"},
            "RouterOutput": {"route": "retrieve", "requests": [{"query": self.question}]},
            "SearchOutput": {"query": self.question},
            "GradeOutput": {"verdict": "enough"},
            "PlanOutput": {"steps": [self.question[:200]]},
            "RefineryOutput": {"decision": "FINISH"},
            "Judgement": {"correct": 2, "complete": 1, "grounded": 0},
        }
        if form == "RouterOutput" and self.asks and "What tools said" not in shown:
            calls = self._choose_calls("", ("find_symbol", "search_codebase"))
            return {
                "route": "use_tool",
                "calls": [{"tool": tool, "arguments": json.dumps(args)} for tool, args in calls],
            }
        return filled[form]

    def _choose_calls(self, shown: str, offered: Sequence[str]) -> list[tuple[str, Mapping[str, Any]]]:
        """Follow what the question is about, in the order in which it matters."""
        evidence = shown.partition("The evidence")[2].partition("What was searched for")[0] or shown
        subjects = _list_subjects(self.question, evidence)
        names = dict.fromkeys([*_list_undefined(self.question, evidence), *_list_names(self.question, evidence)])
        missing = _list_missing(self.question, evidence)
        calls: list[tuple[str, Mapping[str, Any]]] = []
        if subjects:
            plain, owner = subjects[0].rpartition(".")[2], subjects[0].rpartition(".")[0].rpartition(".")[2]
            asked_for = [name for name in (plain, owner) if name and not name.startswith("__")] or [plain]
            calls += [
                ("get_callers", {"function_name": asked_for[-1] if "class" in self.question else subjects[0]}),
                ("get_callees", {"function_name": subjects[0]}),
                ("grep", {"pattern": _quote(asked_for[0]), "more_patterns": [_quote(name) for name in asked_for[1:]]}),
            ]
            names = dict.fromkeys([*filter(None, [owner]), *names])
        calls += [("find_symbol", {"name": name}) for name in list(names)[:MAX_NAMES]]
        if missing or not subjects:
            query = " ".join(missing[:MAX_MISSING]) or self.question
            calls.append(("search_codebase", {"query": query, "n_results": 4}))
        return [call for call in calls if call[0] in offered]


def _quote(name: str) -> str:
    return rf"\b{re.escape(name)}\b"


def _list_subjects(question: str, evidence: str) -> list[str]:
    """List what the question is about: the definitions shown that it names, then what shares most words with it."""
    terms = find_content_terms(question)
    mentioned = {name.rpartition(".")[2] for name in find_mentions(question).names}
    found = dict.fromkeys(symbol for _, symbol in _SUBJECT.findall(evidence))
    scored = [
        (symbol.rpartition(".")[2] in mentioned, len(match_terms(symbol, terms)), -at)
        for at, symbol in enumerate(found)
    ]
    ranked = sorted(zip(scored, found, strict=True), reverse=True)
    return [symbol for (is_named, score, _), symbol in ranked if is_named or score]


def _list_undefined(question: str, evidence: str) -> Iterator[str]:
    """List the names in the question that nothing shown defines."""
    defined = set(_DEFINED.findall(evidence))
    return (name for name in find_mentions(question).names if name.rpartition(".")[2] not in defined)


def _list_missing(question: str, evidence: str) -> list[str]:
    """List the words of the question that nothing shown has, the longest first."""
    there = match_terms(evidence, find_content_terms(question))
    words = dict.fromkeys(re.findall(r"[A-Za-z_]{5,40}", question))
    return sorted((word for word in words if find_content_terms(word) - there), key=len, reverse=True)


def _list_names(question: str, shown: str) -> Iterator[str]:
    """List the names in what is shown, but not defined there, that share most words with the question."""
    terms = find_content_terms(question)
    defined = set(_DEFINED.findall(shown))
    counted = Counter(_NAME.findall(shown))
    names = [name for name in counted if name not in defined and ("_" in name.strip("_") or not name.islower())]
    scored = [(len(match_terms(name, terms)), counted[name], name) for name in names]
    return (name for score, _, name in sorted(scored, reverse=True) if score > 1)


def _make_call(name: str, args: Mapping[str, Any], *, number: int = 1) -> dict[str, Any]:
    return {"name": name, "args": dict(args), "id": f"call_{number:024}", "type": "tool_call"}


def _write_answer(shown: str) -> str:
    """Cite the first things that are shown, by their files."""
    cited = list(dict(_HEADING.findall(shown)).items())[:3]
    return " ".join(f"See `{path}` [{number}]." for number, path in cited) or "Nothing was shown."
