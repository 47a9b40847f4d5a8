"""The citations of a model's text: read in every form, weighed against what was shown, kept, repaired or dropped."""
