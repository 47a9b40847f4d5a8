"""The layers of the security gateway, cheapest first."""
