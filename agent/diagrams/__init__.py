"""Draws the compiled graph: as Mermaid, as text and as a picture, with no key and no web service."""
