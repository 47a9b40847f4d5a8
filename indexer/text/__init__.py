"""Facts about text for all of the indexer: decoding, languages, tokens, globs, patterns."""
