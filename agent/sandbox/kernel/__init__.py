"""What the kernel is asked: which system calls there are and which are refused, what a command may touch and holds."""
