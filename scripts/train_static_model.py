"""Train the word vectors that ship in indexer/embedding/static_model on the documentation of public source packages.

    python -m scripts.make_static_model --to BASE                       the table that the training starts from
    python -m scripts.train_static_model --base BASE --work DIR --download

DIR keeps the packages of scripts/static_training/sources.txt, and the pairs made of them. `--download` fetches what is
missing with pip, npm and apt; archives put there by hand are as good, since they are known by their SHA-256. Nothing
of a package is executed. Needs, beside this project, scipy (it is in the extra `dev`), 6 GB of memory, and a quarter of
an hour on two cores. The same machine gives the same files; another rounds otherwise, and gives a model as good.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Sequence
from functools import partial
from multiprocessing import Pool
from pathlib import Path

from scripts.static_training.bags import load_bags, pack_pairs
from scripts.static_training.corpus import read_corpus
from scripts.static_training.pairs import find_pairs
from scripts.static_training.sources import Source, download_sources, find_archives, read_members, read_sources
from scripts.static_training.table import STATIC_MODEL, StartingTable, Table, average_tables, write_table
from scripts.static_training.training import Settings, train_table

RUNS = (Settings(temperature=0.05, seed=1), Settings(temperature=0.08, seed=2))


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, and go all the way from packages to the files of the model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, required=True, metavar="DIR", help="the table to start from")
    parser.add_argument("--work", type=Path, required=True, metavar="DIR", help="keeps packages and pairs")
    parser.add_argument("--to", dest="target", type=Path, metavar="DIR", default=STATIC_MODEL)
    parser.add_argument("--download", action="store_true", help="fetch the packages that are not in DIR")
    parser.add_argument("--jobs", type=int, default=2, help="how many packages are read, or tables trained, at once")
    parser.add_argument("--steps", type=int, default=RUNS[0].steps)
    parser.add_argument("--most", type=int, default=15_000, help="documented definitions taken of one package")
    parser.add_argument("--sources", type=Path, help="another list of packages")
    options = parser.parse_args(arguments)
    sources = read_sources(options.sources) if options.sources else read_sources()
    if options.download:
        download_sources(sources, options.work)
    packed = pack_sources(sources, options.work, most=options.most, jobs=options.jobs)
    runs = [settings.shortened(options.steps) for settings in RUNS]
    with Pool(options.jobs) as pool:
        tables = pool.map(partial(_train_run, packed=packed, base=options.base), runs, chunksize=1)
    print(write_table(average_tables(tables), options.target))


def pack_sources(sources: Sequence[Source], work: Path, *, most: int, jobs: int) -> list[Path]:
    """Find the pairs of every package, but of those that were read before; every package must be there."""
    archives = find_archives(work)
    missing = [f"{source.name} {source.version}" for source in sources if source.digest not in archives]
    if missing:
        message = f"Not in {work}: {', '.join(missing)}. Put them there, or let --download fetch them."
        raise SystemExit(message)
    paths = [work / f"{source.digest[:16]}-{most}.npz" for source in sources]
    todo = [(source, archives[source.digest], path) for source, path in zip(sources, paths, strict=True)]
    todo = [task for task in todo if not task[2].exists()]
    with Pool(jobs) as pool:
        for name, counts in pool.imap_unordered(partial(_pack_source, most=most), todo):
            print(name, dict(counts), flush=True)
    return paths


def _pack_source(task: tuple[Source, Path, Path], most: int) -> tuple[str, Counter[str]]:
    source, archive, path = task
    corpus = read_corpus(read_members(archive))
    return source.name, pack_pairs(find_pairs(corpus, random.Random(source.name), most), path)  # noqa: S311


def _train_run(settings: Settings, packed: Sequence[Path], base: Path) -> Table:
    return train_table(load_bags(packed), StartingTable.read(base), settings)


if __name__ == "__main__":
    main()
