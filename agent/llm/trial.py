"""Asks a chat model for one word, to find out whether it answers at all."""

from __future__ import annotations

from contextlib import aclosing

from agent.ports import ChatModel

_REQUEST = "Answer with the single word: ready"


async def ping_model(model: ChatModel) -> None:
    """Wait for the beginning of an answer; raises `ModelError` where there is none."""
    from langchain_core.messages import HumanMessage

    async with aclosing(model.stream([HumanMessage(_REQUEST)], task="doctor")) as pieces:
        await anext(pieces, None)
