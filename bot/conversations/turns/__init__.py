"""What one turn is made of: the question with what came with it, the code it is about, its run, and its reply."""
