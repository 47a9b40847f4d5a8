"""Makes the model that tells what a question wants out of example lines."""
