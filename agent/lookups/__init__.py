"""Lookups in the code, each declared once: the tools of models and of MCP, and operations of the HTTP API."""
