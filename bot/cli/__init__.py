"""The command line: one module per group of commands; imports nothing heavy before a command is known."""
