"""Reads a file's registrations: routes, commands, tasks, events, models, options, environment variables, settings."""
