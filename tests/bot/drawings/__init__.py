"""Tests of the repositories, their freshness, and the choice among them."""
