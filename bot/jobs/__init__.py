"""Jobs: answers and refreshes for free workers, in this process or another."""
