"""The tools of a goal run beside those that read the index: all of them work in the sandbox."""
