"""OpenTelemetry traces of runs: one listener of the agent's events, whose spans are sent by OTLP over HTTP.

Names are those of the GenAI semantic conventions, in the repository
open-telemetry/semantic-conventions-genai; other names begin with `citebot.`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from agent import AgentEvent, AsyncEventBus, Subscription
from bot.clock import RareWarnings
from indexer import describe_extra

if TYPE_CHECKING:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
    from opentelemetry.trace import Span, Tracer

Mask = Callable[[str], str]
Price = Callable[[Mapping[str, Any]], float | None]  # dollars of a call by its payload, where its price is known

FLUSH_SECONDS = 3.0  # for one request, and at the end for spans that were not sent yet

_PROVIDERS = {  # as the conventions spell them, where LangChain's names differ
    "azure_openai": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "bedrock_converse": "aws.bedrock",
    "google_genai": "gcp.gemini",
    "google_vertexai": "gcp.vertex_ai",
    "mistralai": "mistral_ai",
    "xai": "x_ai",
}
_ROLES = {"human": "user", "ai": "assistant"}

log = logging.getLogger(__name__)


@asynccontextmanager
async def export_traces(
    events: AsyncEventBus, *, endpoint: str | None, headers: str, service: str, price: Price, mask: Mask | None
) -> AsyncGenerator[None]:
    """Send a trace of each run to a collector for as long as the context is open; nothing without an endpoint.

    With `mask` the traces have contents: questions, answers, prompts, arguments. No answer waits for the collector.
    """
    opened = await asyncio.to_thread(_open_provider, endpoint, headers, service) if endpoint else None
    if opened is None:
        yield
        return
    provider, exporter = opened
    try:
        async with events.follow(RunTraces(provider.get_tracer("citebot"), price, mask).follow):
            yield
    finally:  # the interpreter waits for these threads, and nobody before it
        limit = threading.Timer(FLUSH_SECONDS, exporter.shutdown)
        threading.Thread(target=_flush, args=(provider, limit), name="citebot-traces").start()


def _open_provider(endpoint: str, headers: str, service: str) -> tuple[TracerProvider, SpanExporter] | None:
    """Open the span exporter; None, with a warning, if that fails. The address may be meant for others."""
    if not endpoint.startswith(("http://", "https://")):
        log.warning("OTEL_EXPORTER_OTLP_ENDPOINT does not begin with http:// or https://, so no traces are sent.")
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.util.re import parse_env_headers
    except ImportError:
        log.warning(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, and no traces are sent: the extra `otel` is not installed. %s",
            describe_extra("otel"),
        )
        return None
    # It warns of each try; our own warning below comes once a minute.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    exporter = OTLPSpanExporter(
        endpoint=f"{endpoint.rstrip('/')}/v1/traces",
        headers=parse_env_headers(headers, liberal=True),
        timeout=FLUSH_SECONDS,
    )
    provider = TracerProvider(resource=Resource.create({"service.name": service}), shutdown_on_exit=False)
    _warn_of_losses(exporter)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider, exporter


def _flush(provider: TracerProvider, limit: threading.Timer) -> None:
    limit.start()
    provider.shutdown()
    limit.cancel()


def _warn_of_losses(exporter: OTLPSpanExporter) -> None:
    """Make an exporter warn periodically of lost spans."""
    warnings, send = RareWarnings(log), exporter.export

    def export(spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result = send(spans)
        except Exception as error:  # encoding fails with many kinds of errors, which the SDK does not show
            warnings.warn(f"Traces are lost: {type(error).__name__}.")
            raise
        if result.name != "SUCCESS":
            warnings.warn("Traces are lost: the collector at OTEL_EXPORTER_OTLP_ENDPOINT does not accept them.")
        return result

    exporter.export = export  # type: ignore[method-assign]  # a class of its own would must be made here


class RunTraces:
    """Makes spans of events: a separate trace of each run."""

    def __init__(self, tracer: Tracer, price: Price, mask: Mask | None = None) -> None:
        self._tracer, self._price, self._mask = tracer, price, mask
        self._runs: dict[str, _RunTrace] = {}

    async def follow(self, events: Subscription) -> None:
        """Process events as they come; contents are masked in a thread, which takes a while."""
        async for event in events:
            if self._mask is None:
                self.take(event)
            elif event.kind != "token":
                await asyncio.to_thread(self.take, event)

    def take(self, event: AgentEvent) -> None:
        """Add an event to the trace of its run."""
        run = self._runs.get(event.run_id)
        if run is None:
            run = self._runs[event.run_id] = _RunTrace(self._tracer, event, self._price, self._mask)
        run.take(event)
        if event.kind == "run_end":
            del self._runs[event.run_id]


class _RunTrace:
    """The spans of one run: nodes below the run, and calls of models and tools below their nodes."""

    def __init__(self, tracer: Tracer, first: AgentEvent, price: Price, mask: Mask | None) -> None:
        self._tracer, self._price, self._mask = tracer, price, mask
        self._root = self._start(
            "invoke_agent citebot",
            first.ts,
            {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "citebot", "citebot.run.id": first.run_id},
        )
        self._node: Span | None = None
        self._between = first.ts  # when the last node ended
        self._lookups: list[str] = []
        self._queries: list[str] = []
        self._calls: dict[str, Span] = {}
        self._read = self._written = 0
        self._dollars: float | None = 0.0
        self._take: Mapping[str, Callable[[Mapping[str, Any], float], None]] = {
            "step_start": self._begin_node,
            "step_end": self._end_node,
            "tool_start": self._begin_tool,
            "tool_end": self._end_tool,
            "model_end": self._add_model_call,
            "error": lambda payload, _: _fail(self._root, str(payload["error"])),
            "answer": self._add_answer,
            "run_end": self._end,
        }

    def take(self, event: AgentEvent) -> None:
        """Add an event."""
        if event.kind in self._take:
            self._take[event.kind](event.payload, event.ts)

    def _start(
        self,
        name: str,
        at: float,
        attributes: Mapping[str, Any],
        *,
        parent: Span | None = None,
        is_client: bool = False,
    ) -> Span:
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind, set_span_in_context

        around = Context() if parent is None else set_span_in_context(parent, Context())
        kind = SpanKind.CLIENT if is_client else SpanKind.INTERNAL
        return self._tracer.start_span(name, around, kind, attributes, start_time=_to_nanoseconds(at))

    def _open_node(self, at: float) -> Span:
        """Return the span of the running node; one without a beginning is named at its end."""
        if self._node is None:
            self._node = self._start("node", at, {}, parent=self._root)
        return self._node

    def _begin_node(self, payload: Mapping[str, Any], at: float) -> None:
        self._open_node(at).update_name(str(payload["node"]))
        if "lookup" in payload:
            self._lookups.append(str(payload["lookup"]))
            self._queries.append(str(payload["query"]))

    def _end_node(self, payload: Mapping[str, Any], at: float) -> None:
        name, changes = str(payload["node"]), payload["changes"]
        node = self._open_node(self._between)
        node.update_name(name)
        node.set_attribute("citebot.node", name)
        if name == "retrieval":
            found = changes.get("retrieved", ())
            node.set_attribute("gen_ai.operation.name", "retrieval")
            node.set_attribute("citebot.retrieval.lookups", self._lookups)
            node.set_attribute("citebot.retrieval.found", len(found))
            self._add_content(node, "gen_ai.retrieval.query.text", "\n".join(self._queries))
            places = [{"id": f"{ref['path']}:{ref['start_line']}", "score": float(ref["score"])} for ref in found]
            self._add_content(node, "gen_ai.retrieval.documents", places)
            self._lookups, self._queries = [], []
        if question := changes.get("cleaned_query"):
            self._add_content(self._root, "gen_ai.input.messages", _write_message("user", str(question)))
        node.end(_to_nanoseconds(at))
        self._node, self._between = None, at

    def _begin_tool(self, payload: Mapping[str, Any], at: float) -> None:
        name = str(payload["tool"])
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": payload["call"],
        }
        span = self._start(f"execute_tool {name}", at, attributes, parent=self._open_node(self._between))
        self._add_content(span, "gen_ai.tool.call.arguments", payload["args"])
        self._calls[payload["call"]] = span

    def _end_tool(self, payload: Mapping[str, Any], at: float) -> None:
        span = self._calls.pop(payload.get("call", ""), None)
        if span is None:  # a call that was refused before it began
            return
        span.set_attribute("citebot.tool.found", payload["found"])
        if not payload["ok"]:
            _fail(span, "tool_error")
        span.end(_to_nanoseconds(at))

    def _add_model_call(self, payload: Mapping[str, Any], at: float) -> None:
        name, read, written = str(payload["model"]), int(payload["input_tokens"]), int(payload["output_tokens"])
        provider, _, model = name.partition(":")
        dollars = self._price(payload)
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
            "gen_ai.request.model": model,
            "gen_ai.usage.input_tokens": read,
            "gen_ai.usage.output_tokens": written,
            "gen_ai.usage.cache_read.input_tokens": int(payload["cached_tokens"]),
            "citebot.task": str(payload["task"]),
            **({"citebot.cost.dollars": dollars} if dollars is not None else {}),
        }
        began, parent = at - float(payload["seconds"]), self._open_node(self._between)
        span = self._start(f"chat {model}", began, attributes, parent=parent, is_client=True)
        self._add_content(span, "gen_ai.input.messages", lambda: _write_messages(payload["messages"]))
        if (reply := payload["reply"]) is not None:
            self._add_content(span, "gen_ai.output.messages", lambda: _write_messages([reply]))
        if payload["error"]:
            _fail(span, payload["error_type"])
        span.end(_to_nanoseconds(at))
        self._read, self._written = self._read + read, self._written + written
        self._dollars = None if dollars is None or self._dollars is None else self._dollars + dollars

    def _add_answer(self, payload: Mapping[str, Any], _: float) -> None:
        answer = payload["answer"]
        self._root.set_attributes(
            {
                "citebot.route": answer.route,
                "citebot.intent": answer.intent,
                "citebot.found": answer.found,
                "citebot.citations": len(answer.citations),
                "citebot.repositories": list(answer.read_at),
                "citebot.commits": list(answer.read_at.values()),
            }
        )
        self._add_content(self._root, "gen_ai.output.messages", _write_message("assistant", answer.text))

    def _end(self, payload: Mapping[str, Any], at: float) -> None:
        """End the run, and its unfinished spans."""
        self._root.set_attributes(
            {
                "gen_ai.conversation.id": payload["thread"],
                "gen_ai.usage.input_tokens": self._read,
                "gen_ai.usage.output_tokens": self._written,
                "citebot.status": payload["status"],
                **({"citebot.cost.dollars": self._dollars} if self._dollars is not None else {}),
            }
        )
        for span in (*self._calls.values(), self._node, self._root):
            if span is not None:
                span.end(_to_nanoseconds(at))

    def _add_content(self, span: Span, name: str, content: object) -> None:
        """Add text of people, models and files, if enabled: masked, and objects as JSON."""
        if self._mask is None:
            return
        content = content() if callable(content) else content
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)
        # A lone surrogate, as JSON may hold one, cannot be sent.
        span.set_attribute(name, self._mask(text).encode("utf-8", "replace").decode())


def _fail(span: Span, kind: str) -> None:
    from opentelemetry.trace import StatusCode

    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR)


def _to_nanoseconds(at: float) -> int:
    return int(at * 1_000_000_000)


def _write_message(role: str, text: str) -> list[Mapping[str, Any]]:
    return [{"role": role, "parts": [{"type": "text", "content": text}]}]


def _write_messages(messages: Sequence[Any]) -> list[Mapping[str, Any]]:
    """Write messages, or a completed form, by the conventions."""
    written: list[Mapping[str, Any]] = []
    for message in messages:
        kind = getattr(message, "type", "")
        if not kind:
            written += _write_message("assistant", message.model_dump_json())
            continue
        (one,) = _write_message(_ROLES.get(kind, kind), str(message.text))
        calls = [
            {"type": "tool_call", "id": call["id"], "name": call["name"], "arguments": call["args"]}
            for call in getattr(message, "tool_calls", ())
        ]
        written.append({**one, "parts": [*one["parts"], *calls]})
    return written
