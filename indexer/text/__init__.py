"""Facts about text that all of the indexer shares: decoding, languages, tokens, globs, patterns."""
