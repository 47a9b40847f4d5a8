"""Symbols are found in files of Elixir and Haskell."""

from __future__ import annotations

from indexer.parsing.file_parser import parse_file
from tests.indexer.parsing.outlines import bases, calls, docs, imports, symbols

ELIXIR = '''\
defmodule My.App do
  use GenServer
  alias My.{A, B}
  alias My.Long.Name, as: Short
  import Enum, only: [map: 2]
  @behaviour Plug
  @limit 10

  @doc """
  Runs it. Yes.
  """
  @spec run(integer) :: integer
  def run(x) when x > 1, do: helper(x)

  def run(x) do
    A.go(x) |> map(fn y -> y end)
  end

  defp helper(x), do: x
  defmacro mac(x) do
    x
  end
end

defimpl P, for: Integer do
  def f(x), do: x
end
'''


def test_elixir_definitions_uses_and_imports_are_found() -> None:
    parsed = parse_file("a.ex", ELIXIR)

    assert symbols(parsed) == [
        "1-23 module My.App",
        "12-17 function My.App.run",
        "19-19 function My.App.helper",
        "20-22 macro My.App.mac",
        "26-26 method P.f",
    ]
    assert calls(parsed) == [
        "13 My.App.run:  helper",
        "16 My.App.run: A go",
        "16 My.App.run:  map",
    ]
    assert bases(parsed) == [
        "6 My.App:  Plug",
    ]
    assert imports(parsed) == [
        (2, "GenServer", "", "GenServer"),
        (3, "My.A", "", "A"),
        (3, "My.B", "", "B"),
        (4, "My.Long.Name", "", "Short"),
        (5, "Enum", "", "Enum"),
    ]
    assert docs(parsed) == ["run: Runs it."]


HASKELL = """\
module Data.Foo (run) where
import qualified Data.Map as M
import Data.List (sort, nub)

-- | A bar. Yes.
data Bar a = Bar { x :: Int } | Baz deriving (Show)
type S = String

class Show a => Cls a where
  meth :: a -> Int

instance Cls Int where
  meth x = x

-- | Runs.
run :: Int -> Int
run 0 = go 1
run n = M.lookup n (sort n) where
  go z = z + 1
limit = 10
"""


def test_haskell_definitions_uses_and_imports_are_found() -> None:
    parsed = parse_file("a.hs", HASKELL)

    assert symbols(parsed) == [
        "6-6 struct Bar",
        "7-7 type S",
        "9-10 interface Cls",
        "10-10 method Cls.meth",
        "13-13 method Cls.meth",
        "16-19 function run",
        "19-19 function run.go",
        "20-20 function limit",
    ]
    assert calls(parsed) == [
        "17 run:  go",
        "18 run: M lookup",
        "18 run:  sort",
    ]
    assert bases(parsed) == [
        "6 Bar:  Show",
    ]
    assert imports(parsed) == [
        (2, "Data.Map", "", "M"),
        (3, "Data.List", "sort", "sort"),
        (3, "Data.List", "nub", "nub"),
    ]
    assert docs(parsed) == ["Bar: A bar.", "run: Runs."]
