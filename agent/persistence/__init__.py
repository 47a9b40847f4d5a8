"""The conversation database: checkpoints, runs, evidence texts, and the pruning of what is old."""
