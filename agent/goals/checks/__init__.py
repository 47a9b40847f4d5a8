"""The kinds of goal that there are, one a module, found by name in a registry."""
