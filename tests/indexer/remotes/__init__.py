"""Tests of repositories on other machines."""
