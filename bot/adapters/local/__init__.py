"""A chat workspace in the browser, on this machine alone: citebot to try without an account."""
