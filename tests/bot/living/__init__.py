"""Tests of answers that know when the code that they cite changes."""
