"""Runs citebot for a team: every configured platform over one conversation core, with an HTTP server beside it."""
