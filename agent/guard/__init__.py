"""The layers of the security gateway against prompt injection and leaks, cheapest first."""
