"""What a question says: its words, the code it names, what it asks for, and what it points back to."""
