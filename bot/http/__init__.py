"""The HTTP application: its server, and the common handling of requests."""
