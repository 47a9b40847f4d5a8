"""Drawings in chats: parses requests to draw code, maps its calls or modules, and makes the message."""
