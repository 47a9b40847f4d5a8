"""Replies that grow: the newest content, one call in flight, within the platform's send budget."""
