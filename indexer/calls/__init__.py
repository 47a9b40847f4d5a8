"""The call graph: the uses of a name, and their definitions."""
