"""Fetches complete lists: options with their defaults, what is registered, what belongs to a group."""
