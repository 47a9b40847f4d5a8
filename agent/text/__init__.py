"""Text as such, whatever it is about."""
