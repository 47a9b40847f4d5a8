"""What each provider but Google is sent, by its own LangChain class and client, and what its answers cost."""

from __future__ import annotations

import pytest
from langchain_core.messages import HumanMessage

from agent.errors import QuotaExceeded
from agent.limits import Budget, TokenUsage
from agent.llm.models import RetryPolicy, open_models
from agent.ports import ChatModel
from tests.agent.conftest import Told
from tests.fakes.loopback.web_service import serving_json

CLAUDE = {
    "id": "m", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "end_turn",
    "content": [{"type": "text", "text": "So it is."}],
    "usage": {"input_tokens": 5, "cache_read_input_tokens": 90, "output_tokens": 3},
}  # fmt: skip
GPT = {
    "id": "c", "object": "chat.completion", "created": 0, "model": "gpt",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "So it is."}}],
    "usage": {
        "prompt_tokens": 95, "completion_tokens": 3, "total_tokens": 98, "prompt_tokens_details": {"cached_tokens": 90},
    },
}  # fmt: skip
QWEN = {
    "model": "qwen3", "done": True, "done_reason": "stop", "prompt_eval_count": 95, "eval_count": 3,
    "message": {"role": "assistant", "content": "So it is."},
}  # fmt: skip
ONCE = RetryPolicy(attempts=1)


async def ask(model: ChatModel, text: str = "Where is it?") -> str:
    return str((await model.reply_with_tools([HumanMessage(text)], [], task="synthesis")).text)


@pytest.mark.parametrize(
    ("spec", "answer", "variables", "cached"),
    [
        ("anthropic:claude", CLAUDE, {"ANTHROPIC_BASE_URL": "", "ANTHROPIC_API_KEY": "k"}, 90),
        ("openai:gpt-4o", GPT, {"OPENAI_BASE_URL": "/v1", "OPENAI_API_KEY": "k"}, 90),
        ("ollama:qwen3", QWEN, {"OLLAMA_HOST": ""}, 0),
    ],
)
async def test_a_provider_is_asked_where_its_own_variable_says(
    monkeypatch: pytest.MonkeyPatch, spec: str, answer: object, variables: dict[str, str], cached: int
) -> None:
    told, budget = Told(), Budget()
    with serving_json({"": answer}) as (url, asked):
        for name, value in variables.items():
            monkeypatch.setenv(name, value if name.endswith("KEY") else url + value)
        async with open_models(spec) as models:
            main = models.make_turn_models(budget, told).main
            assert main is not None
            assert await ask(main) == "So it is."

    assert budget.usage == TokenUsage(input_tokens=95, output_tokens=3, cached_tokens=cached)
    ((_, payload),) = told.events
    assert payload["cached_tokens"] == cached
    # Claude keeps what a prompt begins with only where it is asked to.
    assert asked[0].get("cache_control") == ({"type": "ephemeral"} if spec.startswith("anthropic") else None)


async def test_a_local_server_is_told_how_long_the_prompt_is() -> None:
    with serving_json({"": QWEN}) as (url, asked):
        async with open_models("ollama:qwen3", ollama_host=url.removeprefix("http://")) as models:
            main = models.make_turn_models(Budget(), Told()).main
            assert main is not None
            for length in (10, 60_000, 10):  # each change would make it load the model again
                await ask(main, "x" * length)
    assert [body["options"]["num_ctx"] for body in asked] == [8_192, 32_768, 32_768]


async def test_a_call_that_was_refused_costs_no_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = Budget()
    with serving_json({"": {"error": {"message": "slow down"}}}, 429) as (url, _):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        async with open_models("openai:gpt-4o", retry=ONCE) as models:
            main = models.make_turn_models(budget, Told()).main
            assert main is not None
            with pytest.raises(QuotaExceeded):
                await main.stream_with_tools([HumanMessage("Where?")], [], Silent(), task="synthesis")
    assert budget.usage == TokenUsage()


class Silent:
    """A text that nobody reads."""

    is_shown = False

    def begin(self) -> None:
        """Do nothing."""

    def write(self, piece: str) -> None:
        """Do nothing."""
