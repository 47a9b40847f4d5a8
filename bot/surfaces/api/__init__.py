"""The HTTP API of `citebot serve`: questions and lookups for programs, and the API that clients of OpenAI speak."""
