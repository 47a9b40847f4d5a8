"""`/v1`: citebot as a model that cites its answers, for clients of the OpenAI API."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

from cachetools import TTLCache
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route, Router

from bot.http.connections import keep_open
from bot.http.event_streams import write_event
from bot.http.requests import BodyReader
from bot.surfaces.api.ask_requests import (
    RepeatedQuestions,
    answer_with_events,
    explain_no_answer,
    read_key,
    wait_for_answer,
)
from bot.surfaces.api.completion_messages import (
    MODEL,
    AskedCompletion,
    ChatTurn,
    CompletionRequest,
    count_usage,
    describe_model,
    format_tail,
    list_annotations,
    name_repository,
    read_messages,
)
from bot.surfaces.api.problems import (
    API_HEADERS,
    RequestProblem,
    authenticate,
    make_error_handlers,
    parse_json,
    read_json,
)
from bot.surfaces.ask_events import Answered, AskEvent, NotAnswered, RunBegun, TextPart
from bot.surfaces.principals import Principal
from bot.surfaces.team_surfaces import Late, SurfaceCore

PREFIX = "/v1"
LARGEST = 2_000_000  # bytes of a conversation
TOTAL = 16_000_000
SECONDS = 10.0
NO_RETRY = "X-Should-Retry"  # the clients of OpenAI ask again by themselves unless this is `false`
FOLLOWED_SECONDS = 3_600.0  # for which the next question continues a conversation
MAX_FOLLOWED = 1_000
REPLACED = "\n\n---\n\n*The text above was withdrawn. This replaces it:*\n\n"

_SENTENCES = {"not_found": f"There is nothing at this path: citebot has {PREFIX}/chat/completions and {PREFIX}/models."}
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class ChatCompletions:
    """Serves the chat completions.

    Each request contains the earlier messages. If they end in an answer given here within the last
    hour, word for word, the question continues the agent's conversation, so it may be a follow-up,
    or the reply to a plan. Otherwise, for example after a second try at an earlier question, they
    are quoted as background.
    """

    def __init__(self, core: Late[SurfaceCore], repeated: RepeatedQuestions) -> None:
        self._core = core
        self._repeated = repeated
        self._bodies = BodyReader(largest=LARGEST, seconds=SECONDS, total=TOTAL)
        self._followed: TTLCache[tuple[str, str], str] = TTLCache(MAX_FOLLOWED, FOLLOWED_SECONDS)

    def join(self, router: Router) -> None:
        """Add the paths to the server's."""
        routes = [
            Route("/chat/completions", self._complete, methods=["POST"]),
            Route("/models", self._list_models),
            Route("/models/{model:path}", self._show_model),
        ]
        application = Starlette(routes=routes, exception_handlers=make_error_handlers(render_error))
        application.router.redirect_slashes = False  # which would lead to whatever host a request names
        router.routes.append(Mount(PREFIX, application))

    async def _list_models(self, request: Request) -> Response:
        models = self._name_models(authenticate(request, self._core.get().tokens))
        return JSONResponse({"object": "list", "data": [describe_model(name) for name in models]}, headers=API_HEADERS)

    async def _show_model(self, request: Request) -> Response:
        name = request.path_params["model"]
        if name not in self._name_models(authenticate(request, self._core.get().tokens)):
            raise _explain_unknown_model(name)
        return JSONResponse(describe_model(name), headers=API_HEADERS)

    def _name_models(self, principal: Principal) -> list[str]:
        """Name citebot, and each repository that a person may ask about as a separate model."""
        visible = self._core.get().lookups.list_visible(principal)
        return [MODEL, *(f"{MODEL}/{name}" for name in visible)]

    async def _complete(self, request: Request) -> Response:
        core = self._core.get()
        principal = authenticate(request, core.tokens)
        sent = parse_json(await read_json(request, self._bodies), CompletionRequest)
        if sent.model not in self._name_models(principal):
            raise _explain_unknown_model(sent.model)
        asked = await asyncio.to_thread(read_messages, sent.messages, core.lookups.mask)
        conversation = self._followed.get(_name_transcript(principal, asked.before))
        begin = partial(
            core.questions.begin, principal, asked.question, surface="api", repository=name_repository(sent.model),
            conversation=conversation, background=() if conversation else asked.background,
        )  # fmt: skip
        events = self._repeated.follow(read_key(request, principal, sent), begin)
        writing = _Completion(sent, unread=asked.unread)
        keep_open(request, principal.key)
        if sent.stream:
            return await answer_with_events(events, partial(self._stream, principal, asked, writing))
        answered = await wait_for_answer(request, events)
        record = writing.write_whole(answered)
        self._note_answer(principal, asked, answered, record["choices"][0]["message"]["content"])
        return JSONResponse(record, headers=API_HEADERS)

    async def _stream(
        self,
        principal: Principal,
        asked: AskedCompletion,
        writing: _Completion,
        events: AsyncGenerator[AskEvent, None],
    ) -> AsyncGenerator[bytes, None]:
        """Write the chunks of an answer; without one, an error and no end, which would make it look complete."""
        async with aclosing(events):
            async for event in events:
                if isinstance(event, NotAnswered):
                    yield write_event(json.dumps(describe_error(explain_no_answer(event))))
                for data in writing.write_chunks(event):
                    yield write_event(data)
                if isinstance(event, Answered):
                    self._note_answer(principal, asked, event, writing.content)

    def _note_answer(self, principal: Principal, asked: AskedCompletion, answered: Answered, content: str) -> None:
        """Let the next question continue a conversation; one that continues from an earlier place does not."""
        self._followed.pop(_name_transcript(principal, asked.before), None)
        if answered.conversation:
            new = ChatTurn(role="user", content=asked.question), ChatTurn(role="assistant", content=content)
            self._followed[_name_transcript(principal, (*asked.before, *new))] = answered.conversation


class _Completion:
    """One completion in progress; `content` is the part already sent."""

    def __init__(self, sent: CompletionRequest, *, unread: str) -> None:
        self.content = ""
        self._text = ""  # of the answer, as far as it was sent
        self._sent = sent
        self._unread = unread
        self._created = int(time.time())
        self._id = "chatcmpl-0"

    def write_whole(self, answered: Answered) -> dict[str, Any]:
        """Return the completion as one object."""
        self._id = f"chatcmpl-{answered.run_id}"
        content = answered.linked + format_tail(answered, is_linked=True, unread=self._unread)
        message = {
            "role": "assistant",
            "content": content,
            "refusal": None,
            "annotations": list_annotations(content, answered.citations),
        }
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return self._frame("chat.completion", [choice]) | {"usage": count_usage(answered.cost)}

    def write_chunks(self, event: AskEvent) -> list[str]:
        """Return the chunks of an event."""
        match event:
            case RunBegun():
                self._id = f"chatcmpl-{event.run_id}"
                return [self._write_delta({"role": "assistant", "content": ""})]
            case TextPart():
                return self._add_text(self._text + event.text if not event.replaces else event.text)
            case Answered():
                return [*self._add_text(event.text), *self._end(event)]
            case _:
                return []

    def _add_text(self, text: str) -> list[str]:
        """Send the new part of the text. Sent text cannot be taken back, so a new beginning is marked as one."""
        grows = text.startswith(self._text)
        part = text[len(self._text) :] if grows else REPLACED + text
        self._text = text
        return self._add(part)

    def _add(self, part: str) -> list[str]:
        self.content += part
        return [self._write_delta({"content": part})] if part else []

    def _end(self, answered: Answered) -> list[str]:
        chunks = self._add(format_tail(answered, is_linked=False, unread=self._unread))
        annotations = list_annotations(self.content, answered.citations)
        if annotations:
            chunks.append(self._write_delta({"annotations": annotations}))
        chunks.append(self._write_delta({}, finish="stop"))
        if self._sent.stream_options is not None and self._sent.stream_options.include_usage:
            usage = self._frame("chat.completion.chunk", []) | {"usage": count_usage(answered.cost)}
            chunks.append(json.dumps(usage))
        return [*chunks, "[DONE]"]

    def _write_delta(self, delta: dict[str, Any], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return json.dumps(self._frame("chat.completion.chunk", [choice]))

    def _frame(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": kind,
            "created": self._created,
            "model": self._sent.model,
            "choices": choices,
        }


def render_error(problem: RequestProblem) -> Response:
    """Render an error in OpenAI's form; after the stream began, clients must not retry by themselves."""
    is_over = problem.status in {409, 500, 504}
    headers = API_HEADERS | problem.headers | ({NO_RETRY: "false"} if is_over else {})
    return JSONResponse(describe_error(problem), problem.status, headers)


def describe_error(problem: RequestProblem) -> dict[str, Any]:
    """Return an error in OpenAI's form."""
    usual = "server_error" if problem.status >= 500 else "invalid_request_error"
    wrong = " ".join(f"{each.field or 'body'}: {each.detail.rstrip('.')}." for each in problem.errors)
    return {
        "error": {
            "message": wrong or _SENTENCES.get(problem.code, problem.detail),
            "type": _TYPES.get(problem.status, usual),
            "param": problem.errors[0].field if problem.errors else None,
            "code": problem.code,
        }
    }


def _explain_unknown_model(name: str) -> RequestProblem:
    detail = f"There is no model {name[:80]!r}; /v1/models lists those that there are for you."
    return RequestProblem(status=404, detail=detail, code="model_not_found")


def _name_transcript(principal: Principal, said: Sequence[ChatTurn]) -> tuple[str, str]:
    """Name a conversation by its messages, to recognize it later."""
    digest = hashlib.sha256()
    for turn in said:
        part = hashlib.sha256(turn.text.strip().encode("utf-8", "surrogatepass")).hexdigest()
        digest.update(f"{turn.role} {part}\n".encode())
    return principal.key, digest.hexdigest()
