"""The configured repositories: their freshness, and the choice for a question."""
