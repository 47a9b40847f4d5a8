"""Finds out which repositories a message is about, of those that its author may ask about in its place."""
