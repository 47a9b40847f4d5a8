"""The catalog of an index as it is on disk now: rebuilt where it is damaged, reopened where it was replaced."""

from __future__ import annotations

import logging
import threading

from indexer.errors import DamagedCatalog
from indexer.store.catalog import Catalog
from indexer.store.data_folder import DataFolder

log = logging.getLogger(__name__)


class LiveCatalog:
    """Opens the catalog of a folder. Readers of an earlier catalog continue with it until all have closed it.

    `was_damaged` says that the index was lost, and nothing has been indexed since.
    """

    def __init__(self, folder: DataFolder) -> None:
        self.was_damaged = False
        self._folder = folder
        self._lock = threading.Lock()
        self._replaced: list[Catalog] = []
        self._catalog = self._open()

    def get(self) -> Catalog:
        """Return the catalog; another process may have put a new one in its place."""
        with self._lock:
            if self._catalog.is_gone():
                self._switch(self._open())
            return self._catalog

    def renew(self) -> None:
        """Start over where damage was met; for anyone who holds the folder as its sole writer."""
        with self._lock:
            if self._catalog.is_damaged and not self._catalog.is_gone():
                self._switch(self._begin_anew("damage was met while it was read"))

    def close(self) -> None:
        """Close everything."""
        with self._lock:
            for catalog in (*self._replaced, self._catalog):
                catalog.close()

    def _switch(self, catalog: Catalog) -> None:
        self._replaced.append(self._catalog)
        self._catalog = catalog

    def _open(self) -> Catalog:
        try:
            return Catalog(self._folder.catalog)
        except DamagedCatalog:
            with self._folder.hold_as_writer():
                try:
                    return Catalog(self._folder.catalog)  # another process was faster
                except DamagedCatalog as error:
                    return self._begin_anew(str(error))

    def _begin_anew(self, reason: str) -> Catalog:
        log.info("%s is deleted: %s", self._folder.catalog, reason)
        self._folder.remove_index()
        self.was_damaged = True
        return Catalog(self._folder.catalog)
