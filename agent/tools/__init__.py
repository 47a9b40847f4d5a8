"""The tools of the graph: a registry, and one module for each tool family."""
