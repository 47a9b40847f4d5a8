"""Which repositories there are, how fresh each is, and which one a question is about."""
