"""Fetches evidence for questions with special answers: commands, folders, registrations, errors."""
