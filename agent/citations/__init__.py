"""Citations in a model's text: read in every form, compared with the evidence, kept, marked or dropped."""
