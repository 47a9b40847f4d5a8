"""The kernel's part of the sandbox: the system call filter, Landlock's rights, and a command's resources."""
