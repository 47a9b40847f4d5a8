"""The kernel's part of the sandbox: the filter of system calls, Landlock's rights, and what a command holds."""
