"""One HTTP application: its server, and what every request to it has in common."""
