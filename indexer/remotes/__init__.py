"""Repositories on other machines: where they are, how they are fetched, and what may be wrong with them."""
