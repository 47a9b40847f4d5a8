"""The prompts of models, the schemas they fill in, and how their text is cleaned."""
