"""What the graph may do: a registry and one module a tool family."""
