"""The trace of a run: a line for what happens, with milliseconds, and nothing that steers a terminal."""

from __future__ import annotations

import dataclasses

from agent.events import AgentEvent
from bot.adapters.terminal.trace import RunTrace
from indexer.types import Location
from tests.fakes.parts import ANSWER, event


def traced(*events: AgentEvent, verbose: bool = False) -> list[str]:
    """The lines that are written of events a hundredth of a second apart."""
    lines: list[str] = []
    trace = RunTrace(lines.append, verbose=verbose)
    for number, each in enumerate(events):
        trace.take(dataclasses.replace(each, ts=1000 + number / 100))
    return lines


def model(task: str, *, error: str = "") -> AgentEvent:
    return event("model_end", model="m:1", task=task, input_tokens=1200, output_tokens=30, seconds=0.5, error=error)


def test_a_node_is_told_with_its_milliseconds() -> None:
    lines = traced(
        event("step_start", node="retrieval", stage="Searching `x`"),
        event("step_end", node="retrieval", changes={"retrieved": []}),
    )

    assert lines == ["      0 ms  retrieval: Searching `x`", "     10 ms  retrieval done in 10 ms"]


def test_a_tool_is_told_with_its_arguments_and_what_it_found() -> None:
    lines = traced(
        event("tool_start", tool="grep", args={"pattern": "a b"}),
        event("tool_end", tool="grep", ok=True, found=3),
        event("tool_end", tool="grep", ok=False, found=0),
    )

    assert [line[12:] for line in lines] == [
        'tool grep {"pattern": "a b"}',
        "tool grep: 3 places in 10 ms",
        "tool grep: no result in 0 ms",
    ]


def test_the_guard_is_told_with_its_rules() -> None:
    watched = {"gateway_verdict": "watch", "gateway_reason": "you_are_now"}
    lines = traced(
        event("step_end", node="security_gateway", changes=watched),
        event("flagged", source="tools", count=2, rules=["call_model", "hide"]),
    )

    assert [line[12:] for line in lines[1:]] == [
        "guard: watched (you_are_now), only reading is left",
        "guard: 2 passages (tools) give orders: call_model, hide; only read-only tools are left",
    ]


def test_evidence_is_told_by_its_places() -> None:
    places = [Location(path="a.py", start_line=n, end_line=n + 1) for n in range(1, 9)]
    found = event("evidence", locations=places, urls=[None] * 8)

    (short,), (long,) = traced(found), traced(found, verbose=True)

    assert short.endswith("evidence: a.py:1-2, a.py:2-3, a.py:3-4, a.py:4-5, a.py:5-6, and 3 more")
    assert long.count("a.py") == 8


def test_tokens_are_told_for_each_call_and_in_sum() -> None:
    answered = event("answer", answer=dataclasses.replace(ANSWER, model="m:1"))
    lines = traced(model("router", error="It is down."), model("synthesis"), event("token", text="It"), answered)

    assert lines[0].endswith("model m:1 for router: 1,200 tokens in, 30 out, 500 ms, failed: It is down.")
    assert lines[1].endswith("model m:1 for synthesis: 1,200 tokens in, 30 out, 500 ms")
    assert "by m:1, 1 citations" in lines[-1]
    assert lines[-1].endswith("in 1 pieces; 2,400 tokens in, 60 out")


def test_text_is_told_once_and_again_after_it_was_taken_back() -> None:
    words = [event("token", text=text) for text in ("One", "two")]
    lines = traced(*words, event("reset", text=""), *words)

    assert [line[12:] for line in lines] == [
        'text begins: "One"',
        "text is withdrawn, 0 characters are left",
        'text begins: "One"',
    ]


def test_only_the_verbose_trace_tells_what_changed_in_the_state() -> None:
    ends = [
        event("step_end", node="a", changes={"intent": "new_question", "plan": []}),
        event("step_end", node="b", changes={"intent": "new_question", "plan": ["look"]}),
        event("step_end", node="c", changes={"plan": []}),
    ]

    lines = [line[12:].strip() for line in traced(*ends, verbose=True)]

    assert [line for line in lines if " = " in line] == ['intent = "new_question"', 'plan = ["look"]', "plan = []"]
    assert not any(" = " in line for line in traced(*ends))


def test_a_pause_a_judgement_and_a_failure_are_told() -> None:
    lines = traced(
        event("goal_check", passed=True, grade="enough"),
        event("iteration_complete", iteration=1, decision="FINISH", reason="found"),
        event("human_check_required", kind="plan", steps=[]),
        event("error", message="No room.", error="CheckpointError"),
        event("run_end", status="failed"),
    )

    assert [line[12:] for line in lines] == [
        "evidence is graded: enough",
        "iteration is over: FINISH, found",
        "a person is asked: plan",
        "error CheckpointError: No room.",
    ]


def test_what_is_long_is_cut_and_no_text_begins_a_line_or_steers_the_terminal() -> None:
    lines = traced(
        event("step_start", node="x", stage="a\nb\x1b[2J"),
        event("tool_start", tool="grep\n", args={"pattern": "\x1b]0;" + "y" * 5000}),
        event("step_end", node="x", changes={"final_answer": "\x9b\n" * 500}),
        verbose=True,
    )

    assert all(len(line) < 400 for line in lines)
    assert not {"\n", "\x1b", "\x9b"} & set("".join(lines))
