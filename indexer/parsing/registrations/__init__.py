"""What a file registers: routes, commands, tasks, events, models, options, environment variables and settings."""
