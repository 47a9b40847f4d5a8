"""Measures what a long chat costs: `python -m benchmarks.conversations --repo PATH`.

A scripted model answers every turn, with `--one-round` after one round of the tool calls that suggest themselves. Of
each turn it is printed how many tokens the model was sent, how many times the first turn's that is, and the share of
its first prompt with which the last prompt of the turn before begins too, which a provider has in its cache
(`benchmarks/prefixes.py`). `--questions` names a file with a turn on each line. `--home` keeps the index.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult

from agent.agent import Agent
from agent.llm.chat_model import LangChainChatModel
from agent.llm.models import ChatModels
from agent.llm.providers import PROVIDERS
from agent.persistence.checkpointer import open_saver
from benchmarks.agent import Library
from benchmarks.prefixes import format_request, measure_prefixes
from benchmarks.scripted_chat import Call, ModelWatch, ScriptedChat, WatchedSpec
from indexer.index import CodeIndex
from indexer.secrets import redact_secrets
from indexer.secrets.cached_redactor import CachedRedactor

CHAT = (
    "how does a question get from Slack to the model?",
    "and what happens when the model fails?",
    "who calls that?",
    "how are the citations of an answer checked?",
    "what if the lines are not there any more?",
    "where is the prompt put together?",
    "can you explain the second step?",
    "which tests cover it?",
    "who changed it last?",
    "how would I add another tool?",
)
_PROSE = " It is called by the part before it, does what its name says, and hands the result on to the part after it."
_SENTENCES = 10  # of prose in an answer


class TalkingChat(ScriptedChat):
    """A scripted model whose answers are as long as those that people get."""

    def _generate(self, messages: list[BaseMessage], *rest: Any, **more: Any) -> ChatResult:
        result = super()._generate(messages, *rest, **more)
        reply = result.generations[0].message
        if isinstance(reply, AIMessage) and not reply.tool_calls:
            result = ChatResult(generations=[ChatGeneration(message=AIMessage(f"{reply.text}{_PROSE * _SENTENCES}"))])
        return result


async def run(arguments: argparse.Namespace) -> None:
    """Ask every question of the chat in turn, and print a line for each."""
    questions = arguments.questions.read_text(encoding="utf-8").splitlines() if arguments.questions else CHAT
    with tempfile.TemporaryDirectory() as temporary:
        index = await CodeIndex.open(arguments.repo, home=arguments.home or Path(temporary) / "index")
        try:
            if not await index.is_current():
                await index.refresh()
            code = await index.pin()
            async with open_saver(Path(temporary) / "chat.sqlite") as saver:
                script, watch = TalkingChat(question="", asks=arguments.one_round), ModelWatch()
                agent = Agent(
                    Library(code=code), saver, CachedRedactor(redact_secrets), models=_make_models(script, watch)
                )
                await _ask_all(agent, script, watch, questions)
        finally:
            await index.aclose()


def _make_models(script: ScriptedChat, watch: ModelWatch) -> ChatModels:
    provider = next(iter(PROVIDERS.values()))
    spec = WatchedSpec(
        spec="scripted:chat",
        provider=provider,
        model="chat",
        api_key=None,
        base_url=None,
        make=lambda _sampling: script,
        watch=watch,
    )
    chat = LangChainChatModel(spec)
    return ChatModels(main=(chat,), small=(chat,))


async def _ask_all(agent: Agent, script: ScriptedChat, watch: ModelWatch, questions: tuple[str, ...]) -> None:
    before: list[Call] = []
    first, shares = 0, list[float]()
    print(f"{'turn':>4} {'calls':>5} {'characters':>10} {'x first':>8} {'as before':>9}  question")
    for number, question in enumerate(questions, 1):
        watch.calls.clear()
        script.question = question
        async for _ in agent.ask(question, thread="chat"):
            pass
        calls = [call for call in watch.calls.values() if call.tools]
        sent = sum(len(format_request(_make_request(call))) for call in calls)
        first = first or sent
        share = measure_prefixes([_make_request(before[-1]), _make_request(calls[0])])[0] if before and calls else 0.0
        shares += [share] * bool(before and calls)
        print(f"{number:4} {len(calls):5} {sent:10,} {sent / first if first else 0:8.2f} {share:9.2f}  {question}")
        before = calls or before
    print(f"as before: median {statistics.median(shares):.2f}, least {min(shares):.2f}")


def _make_request(call: Call) -> dict[str, Any]:
    return {"messages": convert_to_openai_messages(call.messages), "tools": call.tools}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repo", type=Path, default=Path.cwd())
    parser.add_argument("--home", type=Path, help="keeps the index for the next time")
    parser.add_argument("--questions", type=Path, help="a file with a turn on each line")
    parser.add_argument("--one-round", action="store_true", help="the model calls tools once in each turn")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
