"""What an investigation needs beside its nodes: prompts, forms that a model fills in, and calls of tools."""
