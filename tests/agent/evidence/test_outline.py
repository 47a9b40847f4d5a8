"""The outline of a file goes into the modules that only hold the rest."""

from __future__ import annotations

from collections.abc import Sequence

from agent.evidence.definitions import list_outline
from indexer.parsing.file_parser import parse_file
from indexer.types import Definition
from tests.fakes.code import FakeCode

RUBY = """module Shop
  module Stock
    class Queue
      def push(item)
        item
      end

      def clear
      end
    end
  end
end
"""


class ParsedFile(FakeCode):
    """One file whose symbols come from its syntax tree."""

    def __init__(self, path: str, text: str) -> None:
        super().__init__({path: text})
        parsed = parse_file(path, text)
        self._symbols = [Definition(path=path, symbol=symbol) for symbol in parsed.symbols]

    async def find_siblings(self, definition: Definition) -> Sequence[Definition]:
        return [one for one in self._symbols if one.symbol.parent == definition.symbol.parent]


async def test_a_class_in_modules_is_outlined_with_its_methods() -> None:
    outline = await list_outline(ParsedFile("lib/queue.rb", RUBY), "lib/queue.rb")

    assert [one.symbol.qualified_name for one in outline] == [
        "Shop",
        "Shop.Stock",
        "Shop.Stock.Queue",
        "Shop.Stock.Queue.push",
        "Shop.Stock.Queue.clear",
    ]
