"""The kinds of goal, one per module, found by name in a registry."""
