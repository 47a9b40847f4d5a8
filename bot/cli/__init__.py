"""The command line: one module per group of commands; nothing heavy is imported before a command is known."""
