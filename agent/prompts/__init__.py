"""What models are told, the schemas they fill in, and what of their text is let through."""
