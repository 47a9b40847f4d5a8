"""Parsers that note what they are given."""

from __future__ import annotations

from concurrent.futures import Future

from indexer.parser_pool.pool import ParserPool
from indexer.parser_pool.wire_format import ParsedContents, Request, SkippedFile


class NotingPool(ParserPool):
    """One parser, and the paths of the files that it was given."""

    def __init__(self) -> None:
        super().__init__(processes=1)
        self.given: list[str] = []

    def submit(self, request: Request) -> Future[ParsedContents | SkippedFile]:
        """Note a file, and have it parsed."""
        self.given.append(request.path)
        return super().submit(request)
