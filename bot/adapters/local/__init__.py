"""A chat workspace in the browser, only on this machine, to try citebot without an account."""
