"""LangChain's message classes, imported at first use: without a model nothing needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexer.lazy_names import load_lazily

if TYPE_CHECKING:
    from langchain_core.messages import (
        AIMessage,
        BaseMessage,
        HumanMessage,
        RemoveMessage,
        SystemMessage,
        ToolMessage,
        message_to_dict,
        messages_from_dict,
    )

__getattr__ = load_lazily(__name__)
