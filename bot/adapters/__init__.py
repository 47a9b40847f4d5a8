"""One technology a module."""
