"""The terminal as a place to talk: lines in, growing answers and traces out, and output as text or JSON."""
