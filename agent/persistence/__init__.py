"""The conversation database: checkpoints, runs, evidence texts, and pruning."""
