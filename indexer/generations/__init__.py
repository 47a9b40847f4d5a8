"""One generation, the index of one commit: built by the pipeline, pinned and read by the reader."""
