"""How questions are read: their words, the code they name, what they ask for, and what they point back to."""
