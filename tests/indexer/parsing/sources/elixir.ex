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
