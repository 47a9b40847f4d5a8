"""What a model may call in a goal run beside the tools that read: all of it runs in the sandbox."""
