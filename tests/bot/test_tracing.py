"""Traces of runs as a collector gets them: their spans, their figures, and what they never tell."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from threading import enumerate as enumerate_threads
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import SecretStr

from agent.agent import Agent
from agent.llm.models import open_models
from agent.persistence.checkpointer import open_saver
from bot.tracing import Mask, RunTraces
from tests.agent.conftest import SECRET, answer_to, redact
from tests.fakes.citebot import Citebot
from tests.fakes.code import FakeCode, FakeLibrary
from tests.fakes.gemini import Failure, FakeGemini, calls, running_gemini, says
from tests.fakes.loopback.web_service import Reply, Request, serving
from tests.fakes.served import served
from tests.fakes.shop import SHOP
from tests.fakes.slack import FakeSlack

QUESTION = "how are dates parsed?"
MODEL = "google_genai:gemini-flash-latest"


def price(call: Mapping[str, Any]) -> float | None:
    """The dollars of the one model that has a price."""
    return (call["input_tokens"] + 10 * call["output_tokens"]) / 1000 if call["model"] == MODEL else None


@asynccontextmanager
async def traced(
    folder: Path, gemini: FakeGemini | None = None, mask: Mask | None = None
) -> AsyncIterator[tuple[Agent, InMemorySpanExporter]]:
    """An agent over the shop, and the spans of what it was asked, once the context is left."""
    kept, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    key = SecretStr("planted-key") if gemini is not None else None
    async with (
        open_models(google_api_key=key, google_base_url=gemini.url if gemini else None) as models,
        open_saver(folder / "conversations.db") as saver,
    ):
        agent = Agent(FakeLibrary(FakeCode(SHOP)), saver, redact, models=models)
        async with agent.events.follow(RunTraces(provider.get_tracer("test"), price, mask).follow):
            yield agent, kept


@pytest.fixture
def gemini() -> Iterator[FakeGemini]:
    with running_gemini() as fake:
        fake.replies.extend(
            [
                calls(("find_symbol", {"name": "parse_date"}), usage=(100, 20)),
                says(f"They are read there [E1].\n\n{SECRET}", usage=(200, 30)),
            ]
        )
        yield fake


def values(span: ReadableSpan) -> Mapping[str, Any]:
    return span.attributes or {}


def named(kept: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in kept.get_finished_spans() if span.name == name]


def written(kept: InMemorySpanExporter) -> list[ReadableSpan]:
    """The calls of the model that writes, whoever else calls one to check that."""
    spans = named(kept, "chat gemini-flash-latest")
    return [span for span in spans if values(span)["citebot.task"] == "executor_llm"]


async def test_a_turn_has_spans_of_its_nodes_calls_and_tools(gemini: FakeGemini, tmp_path: Path) -> None:
    async with traced(tmp_path, gemini) as (agent, kept):
        answer = await answer_to(agent, QUESTION, thread="terminal:a")

    (turn,) = named(kept, "invoke_agent citebot")
    asked, wrote = written(kept)
    (tool,) = named(kept, "execute_tool find_symbol")
    (retrieval,) = named(kept, "retrieval")
    nodes = {span.context.span_id: span.name for span in kept.get_finished_spans() if "citebot.node" in values(span)}
    assert {span.context.trace_id for span in kept.get_finished_spans()} == {turn.context.trace_id}
    assert turn.parent is None
    assert [nodes[span.parent.span_id] for span in (asked, tool, wrote) if span.parent] == [
        "executor_llm",
        "tool_node",
        "executor_llm",
    ]
    assert list(nodes.values())[:2] == ["security_gateway", "input_preprocessor"]
    assert list(nodes.values())[-1] == "conversation_memory"
    assert values(asked).items() >= {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "gcp.gemini", "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20, "citebot.cost.dollars": 0.3,
    }.items()  # fmt: skip
    assert values(retrieval)["gen_ai.operation.name"] == "retrieval"
    assert int(values(retrieval)["citebot.retrieval.found"]) > 0
    assert values(turn).items() >= {
        "gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "terminal:a",
        "gen_ai.usage.input_tokens": 300, "gen_ai.usage.output_tokens": 50, "citebot.route": answer.route,
        "citebot.status": "completed", "citebot.citations": len(answer.citations),
    }.items()  # fmt: skip
    assert values(turn)["citebot.cost.dollars"] == pytest.approx(0.8)


async def test_contents_are_left_out_by_default(gemini: FakeGemini, tmp_path: Path) -> None:
    async with traced(tmp_path, gemini) as (agent, kept):
        await answer_to(agent, QUESTION)

    told = " ".join(span.to_json() for span in kept.get_finished_spans())
    assert "dates" not in told
    assert "parse_date" not in told


async def test_contents_are_masked_where_they_are_wanted(gemini: FakeGemini, tmp_path: Path) -> None:
    async with traced(tmp_path, gemini, redact) as (agent, kept):
        await answer_to(agent, QUESTION)

    (turn,), (tool,) = named(kept, "invoke_agent citebot"), named(kept, "execute_tool find_symbol")
    _, wrote = written(kept)
    assert json.loads(str(values(turn)["gen_ai.input.messages"])) == [
        {"role": "user", "parts": [{"type": "text", "content": QUESTION}]}
    ]
    assert json.loads(str(values(tool)["gen_ai.tool.call.arguments"])) == {"name": "parse_date"}
    shown = [message["role"] for message in json.loads(str(values(wrote)["gen_ai.input.messages"]))]
    assert shown == ["system", "user", "assistant", "tool"]
    assert "[REDACTED:password]" in str(values(wrote)["gen_ai.output.messages"])
    assert SECRET not in " ".join(span.to_json() for span in kept.get_finished_spans())


async def test_runs_at_the_same_time_have_traces_of_their_own(tmp_path: Path) -> None:
    async with traced(tmp_path) as (agent, kept):
        await asyncio.gather(*(answer_to(agent, QUESTION, thread=f"t{number}") for number in range(4)))

    spans = kept.get_finished_spans()
    traces = {
        span.context.trace_id: [one for one in spans if one.context.trace_id == span.context.trace_id] for span in spans
    }
    assert len(traces) == 4
    for trace in traces.values():
        known = {span.context.span_id for span in trace}
        assert [span.name for span in trace if span.parent is None] == ["invoke_agent citebot"]
        assert {span.parent.span_id for span in trace if span.parent is not None} <= known


async def test_a_model_that_fails_is_told_with_the_class_of_its_error(gemini: FakeGemini, tmp_path: Path) -> None:
    gemini.replies.clear()
    gemini.script = lambda _: Failure(status=403, message="planted-key is refused", reason="PERMISSION_DENIED")
    async with traced(tmp_path, gemini) as (agent, kept):
        await answer_to(agent, QUESTION)

    (asked,) = named(kept, "chat gemini-flash-latest")
    assert (values(asked)["error.type"], asked.status.is_ok) == ("InvalidApiKey", False)


@contextmanager
def collecting() -> Iterator[tuple[str, list[ExportTraceServiceRequest], list[str]]]:
    """A collector on loopback: its address, what it was sent, and under which path and token."""
    sent: list[ExportTraceServiceRequest] = []
    paths: list[str] = []

    def collect(request: Request) -> Reply:
        paths.append(f"{request.path} {request.headers['authorization']}")
        sent.append(ExportTraceServiceRequest.FromString(request.body))
        return Reply()

    with serving(collect) as url:
        yield url, sent, paths


def end_traces() -> None:
    """Wait as the interpreter does at its end."""
    for thread in enumerate_threads():
        if thread.name == "citebot-traces":
            thread.join()


def test_a_question_of_the_command_line_is_sent_by_otlp(citebot: Citebot, monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting() as (address, sent, paths):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20planted-token")
        done = citebot("ask", "where is parse_date defined?")
        end_traces()

    (resource,) = [resource for request in sent for resource in request.resource_spans]
    told = {attribute.key: attribute.value.string_value for attribute in resource.resource.attributes}
    assert (done.code, done.err) == (0, "")
    assert set(paths) == {"/v1/traces Bearer planted-token"}
    assert told["service.name"] == "citebot"
    assert "invoke_agent citebot" in {span.name for scope in resource.scope_spans for span in scope.spans}


def test_a_collector_that_is_down_costs_a_warning(
    citebot: Citebot, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with collecting() as (address, _, _):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    done = citebot("ask", "where is parse_date defined?")
    end_traces()

    assert done.code == 0
    assert "shop/dates.py" in done.out
    assert caplog.messages == ["Traces are lost: the collector at OTEL_EXPORTER_OTLP_ENDPOINT does not accept them."]


def test_an_address_that_was_meant_for_another_program_stops_nothing(
    citebot: Citebot, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317")

    assert citebot("ask", "where is parse_date defined?").code == 0
    assert "does not begin with http:// or https://, so no traces are sent" in caplog.text


def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    citebot: Citebot, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    done = citebot("ask", "where is parse_date defined?")

    assert done.code == 0
    assert "no traces are sent: the extra `otel` is not installed. Install it: " in caplog.text


async def test_a_service_sends_traces_of_what_a_team_asks(shop: Path, tmp_path: Path) -> None:
    with collecting() as (address, sent, _):
        more = {"OTEL_EXPORTER_OTLP_ENDPOINT": address}
        async with FakeSlack() as slack, served(slack, shop, tmp_path / "data", more, directory=tmp_path) as serving:
            await serving.ask("where is parse_date defined?")
        await asyncio.to_thread(end_traces)

    scopes = [scope for request in sent for each in request.resource_spans for scope in each.scope_spans]
    assert {"invoke_agent citebot", "retrieval", "conversation_memory"} <= {
        span.name for scope in scopes for span in scope.spans
    }
