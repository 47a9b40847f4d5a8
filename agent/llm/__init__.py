"""Remote chat models: building them, asking them, and interpreting their failures."""
