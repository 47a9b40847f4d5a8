"""Talks to people: the console, the chat platforms, and the settings they run with."""
