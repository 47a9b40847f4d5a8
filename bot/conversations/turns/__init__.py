"""The parts of one turn: its question with attachments, the code to read, the agent's run, and the reply."""
