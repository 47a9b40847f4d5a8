"""Goal runs: the loop, its goals, its tools."""
