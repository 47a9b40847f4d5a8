"""One generation, the index of one commit: built by the pipeline, held and read by the reader."""
