"""Chat models: the real LangChain classes in front of a Gemini that answers as a script says."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import BaseModel, SecretStr

from agent.errors import (
    AnswerBlocked,
    AnswerEmpty,
    AnswerMalformed,
    AnswerTruncated,
    BudgetExceeded,
    InvalidApiKey,
    ModelError,
    ModelMisconfigured,
    ModelTimeout,
    ModelUnavailable,
    QuotaExceeded,
    RequestRefused,
    UnknownModel,
)
from agent.limits import Budget, TokenUsage, TurnLimits
from agent.llm.models import ChatModels, RetryPolicy, open_models
from agent.llm.providers import PROVIDERS, Sampling
from agent.ports import ChatModel
from tests.agent.conftest import Told
from tests.fakes.gemini import (
    Failure,
    FakeGemini,
    Reply,
    blocks_prompt,
    breaks,
    calls,
    fills,
    hangs,
    running_gemini,
    says,
    withholds,
)
from tests.fakes.loop_clock import LoopClock
from tests.waiting import wait_until

KEY = "a-very-secret-key"
PATIENT = RetryPolicy(whole=1_000.0, first=500.0, idle=200.0, backoff=0.01)
ASKED = [SystemMessage("Be brief."), HumanMessage("Where is it?")]


class Verdict(BaseModel):
    """A form to fill in."""

    good: bool
    why: str


def opened(gemini: FakeGemini, **details: Any) -> AbstractAsyncContextManager[ChatModels]:
    settings = {"retry": PATIENT, **details}
    return open_models(google_api_key=SecretStr(KEY), google_base_url=gemini.url, **settings)


@pytest.fixture
async def models(gemini: FakeGemini) -> AsyncIterator[ChatModels]:
    async with opened(gemini) as found:
        yield found


def turn(models: ChatModels, told: Told | None = None, budget: Budget | None = None) -> ChatModel:
    main = models.make_turn_models(budget or Budget(), told or Told()).main
    assert main is not None
    return main


class Written:
    """A text of which everything is shown at once, or nothing before its end."""

    def __init__(self, *, holds: bool = False, on_piece: Callable[[str], None] = lambda _: None) -> None:
        self.pieces: list[str] = []
        self._holds = holds
        self._on_piece = on_piece

    @property
    def is_shown(self) -> bool:
        return bool(self.pieces) and not self._holds

    def begin(self) -> None:
        self.pieces.clear()

    def write(self, piece: str) -> None:
        self.pieces.append(piece)
        self._on_piece("".join(self.pieces))


async def streamed(model: ChatModel, text: Written | None = None) -> str:
    text = text or Written()
    await model.stream_with_tools(ASKED, [], text, task="synthesis")
    return "".join(text.pieces)


async def filled(model: ChatModel) -> str:
    return (await model.generate_structured(ASKED, Verdict, task="grade")).why


async def replied(model: ChatModel) -> str:
    return str((await model.reply_with_tools(ASKED, [], task="executor")).text)


async def test_answers_and_forms_are_written_as_each_is_wanted(gemini: FakeGemini) -> None:
    gemini.replies += [says("So it is."), fills({"good": True, "why": "so"}), says("So it is.")]
    sampling = {"answers": Sampling(temperature=0.2), "forms": Sampling(temperature=0.0, thinking="low")}

    async with opened(gemini, model="google_genai:gemini-2.5-flash", **sampling) as models:
        await streamed(turn(models))
        await filled(turn(models))
        await replied(turn(models))

    answer, form, reply = (request.body["generationConfig"] for request in gemini.received)
    assert (answer["temperature"], form["temperature"], reply["temperature"]) == (0.2, 0.0, 0.2)
    assert form["thinkingConfig"] == {"thinking_budget": 512}
    assert "thinkingConfig" not in answer


async def test_newer_models_keep_the_temperature_of_their_provider(gemini: FakeGemini) -> None:
    gemini.replies.append(fills({"good": True, "why": "so"}))
    async with opened(gemini, forms=Sampling(temperature=0.0, thinking="low")) as models:
        await filled(turn(models))

    config = gemini.received[0].body["generationConfig"]
    assert "temperature" not in config
    assert config["thinkingConfig"] == {"thinking_level": "LOW"}


@pytest.mark.parametrize(
    ("provider", "model", "sampling", "told"),
    [
        ("google_genai", "gemini-2.5-flash", Sampling(temperature=0.0, thinking="off"), [0.0, 0]),
        ("google_genai", "gemini-2.5-pro", Sampling(temperature=0.2, thinking="off"), [0.2, 512]),
        ("google_genai", "gemini-3.1-pro-preview", Sampling(temperature=0.2, thinking="off"), ["low"]),
        ("google_genai", "gemini-3-flash", Sampling(temperature=0.2, thinking="off"), ["minimal"]),
        ("google_genai", "gemini-flash-latest", Sampling(temperature=0.2), []),
        ("google_genai", "gemini-2.0-flash", Sampling(temperature=0.0, thinking="low"), [0.0]),
        ("openai", "gpt-4o", Sampling(temperature=0.2, thinking="off"), [0.2]),
        ("openai", "gpt-5-mini", Sampling(temperature=0.2, thinking="off"), ["low"]),
        ("anthropic", "claude", Sampling(temperature=0.2, thinking="off"), [0.2]),
        ("ollama", "qwen3", Sampling(thinking="off"), [False]),
        ("ollama", "qwen3", Sampling(thinking="low"), []),
    ],
)
def test_a_model_is_told_only_what_it_can_be_told(
    provider: str, model: str, sampling: Sampling, told: list[object]
) -> None:
    assert sorted(map(str, PROVIDERS[provider].make_arguments(model, sampling).values())) == sorted(map(str, told))


async def test_text_arrives_in_pieces_with_its_cost(gemini: FakeGemini, models: ChatModels) -> None:
    gemini.replies.append(says("It is in one place.", usage=(30, 6)))
    told, budget = Told(), Budget()

    text = Written()
    await streamed(turn(models, told, budget), text)

    assert "".join(text.pieces) == "It is in one place."
    assert len(text.pieces) > 1
    assert (budget.calls, budget.usage) == (1, TokenUsage(input_tokens=30, output_tokens=6))
    ((kind, payload),) = told.events
    assert (kind, payload["task"], payload["input_tokens"], payload["error"]) == ("model_end", "synthesis", 30, "")
    assert gemini.received[0].key == KEY
    assert gemini.received[0].prompt == "Be brief.\nWhere is it?"


@pytest.mark.parametrize(
    ("ask", "status"), [(streamed, 301), (streamed, 302), (streamed, 307), (filled, 308), (replied, 308)]
)
async def test_a_redirect_takes_neither_the_key_nor_the_question_along(
    gemini: FakeGemini, models: ChatModels, ask: Callable[[ChatModel], Awaitable[str]], status: int
) -> None:
    with running_gemini() as elsewhere:
        path = "/v1beta/models/gemini-flash-latest:generateContent"
        gemini.script = lambda _: Failure(status=status, location=f"{elsewhere.url}{path}")
        with pytest.raises(ModelError):
            await ask(turn(models))

    assert elsewhere.received == []


async def test_a_model_that_writes_without_end_is_cut(
    gemini: FakeGemini, models: ChatModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.llm.chat_model.LONGEST_REPLY", 10)
    gemini.replies.append(says("It is here. " * 100))

    with pytest.raises(AnswerTruncated, match="past the limit"):
        await streamed(turn(models))


async def test_a_form_is_filled_in_by_its_schema(gemini: FakeGemini, models: ChatModels) -> None:
    gemini.replies.append(fills({"good": True, "why": "it fits"}))

    assert await filled(turn(models)) == "it fits"
    assert gemini.received[0].is_form


async def test_tool_calls_come_back_with_their_signature(gemini: FakeGemini, models: ChatModels) -> None:
    gemini.replies += [calls(("grep", {"pattern": "x"}), signature="c2ln"), says("Done.")]
    tool = {"name": "grep", "description": "Search.", "parameters": {"type": "object", "properties": {}}}
    model = turn(models)

    reply = await model.reply_with_tools(ASKED, [tool], task="executor")
    result = ToolMessage("found", tool_call_id=reply.tool_calls[0]["id"] or "")
    last = await model.reply_with_tools([*ASKED, reply, result], [tool], task="executor")

    assert isinstance(reply, AIMessage)
    assert (reply.tool_calls[0]["name"], reply.tool_calls[0]["args"]) == ("grep", {"pattern": "x"})
    assert str(last.text) == "Done."
    sent_back = gemini.received[1].body["contents"][1]["parts"][0]
    assert (sent_back["functionCall"]["name"], sent_back["thoughtSignature"]) == ("grep", "c2ln")


FAILURES: list[tuple[Reply | Failure, type[ModelError], int]] = [
    (Failure(status=400, message="API key not valid: " + KEY, reason="API_KEY_INVALID"), InvalidApiKey, 1),
    (Failure(status=401), InvalidApiKey, 1),
    (Failure(status=403), InvalidApiKey, 1),
    (Failure(status=404), UnknownModel, 1),
    (Failure(status=400, message="bad"), RequestRefused, 1),
    (Failure(status=429), QuotaExceeded, 3),
    (Failure(status=500), ModelUnavailable, 3),
    (withholds("SAFETY"), AnswerBlocked, 1),
    (blocks_prompt(), AnswerBlocked, 1),
    (withholds("MALFORMED_FUNCTION_CALL"), AnswerMalformed, 2),
    (withholds("MAX_TOKENS"), AnswerEmpty, 2),
    (says("  "), AnswerEmpty, 2),
    (hangs(), ModelTimeout, 3),
    (breaks(), ModelUnavailable, 3),
]
BY_WAY = FAILURES[6::3]  # what forms and tool calls may learn in another way than a stream


@pytest.mark.filterwarnings("ignore:coroutine 'ClientResponse.json' was never awaited:RuntimeWarning")
@pytest.mark.parametrize(
    ("ask", "reply", "error", "tries"),
    [(streamed, *each) for each in FAILURES] + [(ask, *each) for ask in (filled, replied) for each in BY_WAY],
)
async def test_each_failure_is_one_of_our_errors(
    gemini: FakeGemini, ask: Callable[[ChatModel], Any], reply: Reply | Failure, error: type[ModelError], tries: int
) -> None:
    clock = LoopClock()
    gemini.script = lambda _: reply
    gemini.on_hang = lambda: clock.advance(1_001 if ask is not streamed else 501)
    async with opened(gemini) as models:
        with pytest.raises(error) as caught:
            await ask(turn(models))

    assert len(gemini.received) == tries
    assert KEY not in f"{caught.value} {caught.value.__cause__}"
    assert str(caught.value).endswith(".")


async def test_a_refused_key_names_its_variable(gemini: FakeGemini, models: ChatModels) -> None:
    gemini.replies.append(Failure(status=400, message="API key not valid.", reason="API_KEY_INVALID"))

    with pytest.raises(InvalidApiKey, match="GOOGLE_API_KEY"):
        await streamed(turn(models))


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (hangs("Half an "), ModelTimeout),
        (breaks("Half an "), ModelUnavailable),
        (says("Half an ", finish="SAFETY"), AnswerBlocked),
        (says("Half an ", finish="MAX_TOKENS"), AnswerTruncated),
    ],
)
async def test_a_stream_that_ends_badly_is_not_tried_again_once_it_is_shown(
    gemini: FakeGemini, reply: Reply, error: type[ModelError]
) -> None:
    read, clock = Event(), LoopClock()
    gemini.replies += [replace(reply, read=read), says("again")]

    def see(text: str) -> None:
        if text.strip() == "Half an":
            read.set()
            if error is ModelTimeout:
                clock.advance(201)

    text = Written(on_piece=see)
    async with opened(gemini) as models:
        with pytest.raises(error):
            await streamed(turn(models), text)

    assert "".join(text.pieces).strip() == "Half an"
    assert len(gemini.received) == 1


async def test_a_stream_that_breaks_off_before_anything_is_shown_is_tried_again(
    gemini: FakeGemini, models: ChatModels
) -> None:
    read = Event()
    read.set()
    gemini.replies += [replace(breaks("Half an "), read=read), says("All of it.")]

    assert await streamed(turn(models), Written(holds=True)) == "All of it."


async def test_a_slow_stream_that_goes_on_is_not_cut(gemini: FakeGemini) -> None:
    gemini.replies.append(says("many words " * 4))
    clock = LoopClock()
    text = Written(on_piece=lambda _: clock.jump(150))
    async with opened(gemini, retry=replace(PATIENT, whole=10_000.0)) as models:
        assert (await streamed(turn(models, budget=Budget(TurnLimits(seconds=10_000.0))), text)).count("many") == 4


@pytest.mark.parametrize("ask", [streamed, replied])
async def test_a_passing_failure_is_tried_again(
    gemini: FakeGemini, models: ChatModels, ask: Callable[[ChatModel], Any]
) -> None:
    gemini.replies += [Failure(status=429), Failure(status=503), says("Here.")]
    told = Told()

    assert await ask(turn(models, told)) == "Here."
    assert [bool(payload["error"]) for _, payload in told.events] == [True, True, False]


async def test_a_bad_form_is_asked_for_once_more(gemini: FakeGemini, models: ChatModels) -> None:
    gemini.replies += [says("no JSON at all"), fills({"good": False, "why": "second"})]

    assert await filled(turn(models)) == "second"


async def test_a_model_whose_first_word_takes_too_long_is_left_for_the_next(gemini: FakeGemini) -> None:
    clock = LoopClock()
    gemini.script = lambda request: hangs() if request.model == "slow" else says("From two.")
    gemini.on_hang = lambda: clock.advance(501)
    async with opened(gemini, model="google_genai:slow", fallback="google_genai:quick") as models:
        assert await streamed(turn(models)) == "From two."


async def test_a_refusal_is_waited_out_for_as_long_as_it_says(gemini: FakeGemini) -> None:
    clock, told = LoopClock(), Told()
    gemini.replies += [Failure(status=429, retry_delay="600s"), says("Here.")]
    async with opened(gemini) as models:
        model = turn(models, told, Budget(TurnLimits(seconds=10_000.0)))
        asking = asyncio.create_task(streamed(model))
        await wait_until(lambda: told.events, "the refusal")
        await let_others_run()
        clock.advance(500)
        await let_others_run()
        assert len(gemini.received) == 1
        clock.advance(300)
        assert await asking == "Here."


async def let_others_run() -> None:
    """Let everything run that waits neither for time nor for the network."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_model_that_failed_is_left_alone_for_the_turn(gemini: FakeGemini, models: ChatModels) -> None:
    gemini.script = lambda _: Failure(status=404)
    model = turn(models)

    for _ in range(3):
        with pytest.raises(UnknownModel):
            await streamed(model)

    assert len(gemini.received) == 1


async def test_a_smaller_model_routes_and_grades(gemini: FakeGemini) -> None:
    gemini.script = lambda request: fills({"good": True, "why": request.model})
    async with opened(gemini, model="google_genai:big", small="google_genai:tiny") as models:
        both = models.make_turn_models(Budget(), Told())
        assert both.main is not None
        assert both.small is not None
        assert (await filled(both.main), await filled(both.small)) == ("big", "tiny")


async def test_the_ceilings_of_a_turn_hold(gemini: FakeGemini, models: ChatModels) -> None:
    gemini.script = lambda _: says("Yes.", usage=(600, 1))
    by_calls = turn(models, budget=Budget(TurnLimits(calls=1)))
    by_tokens = turn(models, budget=Budget(TurnLimits(tokens=500)))
    late = iter([0.0, *[200.0] * 9])
    by_time = turn(models, budget=Budget(clock=lambda: next(late)))

    for model, first in ((by_calls, "Yes."), (by_tokens, "Yes."), (by_time, None)):
        if first is not None:
            assert await streamed(model) == first
        with pytest.raises(BudgetExceeded):
            await streamed(model)
    assert len(gemini.received) == 2


async def test_a_try_ends_with_the_time_of_the_turn(gemini: FakeGemini) -> None:
    clock = LoopClock()
    gemini.script = lambda _: hangs()
    gemini.on_hang = lambda: clock.advance(301)
    budget = Budget(TurnLimits(seconds=300.0), clock=asyncio.get_running_loop().time)
    async with opened(gemini) as models:
        with pytest.raises(ModelError):
            await streamed(turn(models, budget=budget))
    assert len(gemini.received) == 1


async def test_without_a_key_there_is_no_model() -> None:
    async with open_models() as models:
        assert models.make_turn_models(Budget(), Told()).main is None


async def test_none_means_none_even_with_a_key() -> None:
    async with open_models("none", google_api_key=SecretStr(KEY)) as models:
        assert models.make_turn_models(Budget(), Told()).main is None


@pytest.mark.parametrize(
    ("spec", "says_what"),
    [
        ("gemini", "There is no language model 'gemini'. Possible are google_genai:MODEL"),
        ("google_genai:", "There is no language model 'google_genai:'"),
        ("nobody:model", "There is no language model 'nobody:model'"),
        ("google_genai:gemini-flash-latest", "set the variable GOOGLE_API_KEY"),
        ("mistralai:large", "needs the package langchain-mistralai, which is not installed"),
    ],
)
async def test_a_model_that_cannot_be_used_is_refused_at_once(spec: str, says_what: str) -> None:
    with pytest.raises(ModelMisconfigured, match=says_what):
        async with open_models(spec):
            pass


async def test_a_model_that_cannot_be_built_shows_no_key(gemini: FakeGemini) -> None:
    async with open_models(
        "google_genai:x", google_api_key=SecretStr(KEY), google_base_url="http://[broken", retry=PATIENT
    ) as models:
        with pytest.raises(ModelError) as caught:
            await streamed(turn(models))
    assert KEY not in f"{caught.value} {caught.value.__cause__}"


def test_naming_a_model_imports_no_provider() -> None:
    program = (
        "import asyncio, sys\nfrom agent.llm.models import open_models\nfrom pydantic import SecretStr\n"
        "async def main():\n    async with open_models(google_api_key=SecretStr('k')) as m:\n        assert m.main\n"
        "asyncio.run(main())\nprint('langchain_google_genai' in sys.modules, 'google.genai' in sys.modules)"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
