"""The citations of a model's text: read in every form, compared with what was shown, kept, marked or dropped."""
