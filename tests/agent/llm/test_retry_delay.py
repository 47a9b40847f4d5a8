"""The retry delay that a rate-limiting provider asks for is found and kept."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from agent.errors import ModelError, QuotaExceeded
from agent.limits import Budget, TurnLimits
from agent.llm.chat_model import LangChainChatModel
from agent.llm.models import RetryPolicy, _Attempts
from agent.llm.providers import map_provider_error, parse_model_spec


class Refusal(Exception):
    """An error as the clients of the providers raise it."""

    def __init__(self, text: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(text)
        self.status_code = 429
        self.response = type("Response", (), {"headers": headers})()


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (Refusal("Quota exceeded. Please retry in 12.5s."), 12.5),
        (Refusal('{"retryDelay": "7s"}'), 7.0),
        (Refusal("too many", {"retry-after": "30"}), 30.0),
        (Refusal("too many", {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}), 0.0),
        (Refusal("too many"), 0.0),
    ],
)
def test_the_seconds_that_a_provider_names_are_found(error: Refusal, seconds: float) -> None:
    ours = map_provider_error(error, "some:model", "KEY")

    assert isinstance(ours, QuotaExceeded)
    assert ours.retry_after == seconds


async def test_a_wait_that_the_turn_has_no_time_for_ends_the_try_at_once() -> None:
    chat = LangChainChatModel(parse_model_spec("google_genai:gemini-2.5-flash", google_api_key=SecretStr("key")))
    attempts = _Attempts([chat], {}, Budget(TurnLimits(seconds=20)), RetryPolicy(backoff=0.0))
    assert await attempts.next() is chat
    refusal = QuotaExceeded("too many", retry_after=60.0)
    attempts.note(chat, refusal)

    with pytest.raises(ModelError) as caught:
        await attempts.next()
    assert caught.value is refusal


async def test_a_wait_that_there_is_time_for_is_kept() -> None:
    chat = LangChainChatModel(parse_model_spec("google_genai:gemini-2.5-flash", google_api_key=SecretStr("key")))
    attempts = _Attempts([chat], {}, Budget(), RetryPolicy(backoff=0.0))
    await attempts.next()
    attempts.note(chat, QuotaExceeded("too many", retry_after=0.01))

    assert await attempts.next() is chat
