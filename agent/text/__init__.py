"""Functions on text, whatever its subject."""
