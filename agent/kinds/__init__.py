"""Fetches evidence for the kinds of question with answers of their own: commands, folders, registrations, errors."""
