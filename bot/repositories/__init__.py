"""The configured repositories: how up to date each is, and the choice of the one that a question is about."""
