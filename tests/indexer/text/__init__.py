"""Tests of decoding, languages, patterns and tokens."""
