"""Repositories on other machines: their addresses, how to fetch them, and their errors."""
