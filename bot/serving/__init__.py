"""Runs citebot for a team: every configured platform over one conversation core, and an HTTP server."""
