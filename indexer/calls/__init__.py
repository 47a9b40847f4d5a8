"""The call graph: the uses of a name, and the definition that each one means."""
