"""Measures what the masking of secrets misses, what it masks wrongly, and how fast it is.

    python -m benchmarks.secrets [--values 10000] [--old REVISION] [REPOSITORY ...]

Prints for every form and alphabet the share of random values of which a part can still be read; for every repository
the throughput, and each line outside of tests in which something is masked, to be judged by eye. With `--old` the
masking of a revision of this repository is measured in the same run.
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from indexer.secrets import redact_secrets
from tests.fakes.secret_forms import ALPHABETS, FORMS, Form, draw_values, leaks

LARGEST = 1_000_000  # bytes of a file that is indexed
ROUNDS = 3
SHOWN = 70  # characters before and after what is masked
_TEST = re.compile(r"(?:^|[/._-])(?:tests?|specs?|testing|testdata|fixtures?|__tests__)(?:[/._-]|$)|Tests?\.\w+$")
_ROOT = Path(__file__).parent.parent

Mask = Callable[[str], str]


def share_leaked(mask: Mask, form: Form, alphabet: str, count: int) -> float:
    return sum(leaks(value, mask(form.fill(value))) for value in draw_values(form, alphabet, count)) / count


def print_leaks(masks: Sequence[tuple[str, Mask]], count: int) -> None:
    per_cell = max(1, count // len(ALPHABETS))
    print(f"Leaked, per cent of {per_cell} values of 12 to 64 characters ({', '.join(name for name, _ in masks)}):\n")
    print(f"{'form':32}", *(f"{alphabet:>15}" for alphabet in ALPHABETS))
    for form in FORMS:
        cells = [[share_leaked(mask, form, alphabet, per_cell) for _, mask in masks] for alphabet in ALPHABETS]
        print(f"{form.name:32}", *(f"{' > '.join(f'{100 * each:.1f}' for each in cell):>15}" for cell in cells))


def read_texts(repository: Path) -> Iterator[tuple[str, str]]:
    """Read the text files at HEAD, of a checkout or of a bare repository."""
    archive = subprocess.run(["git", "-C", str(repository), "archive", "HEAD"], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for member in files:
            found = files.extractfile(member) if member.isfile() and member.size <= LARGEST else None
            data = found.read() if found else b"\0"
            if b"\0" not in data:
                yield member.name, data.decode("utf-8", "replace")


def print_speed(masks: Sequence[tuple[str, Mask]], texts: Sequence[tuple[str, str]]) -> None:
    size = sum(len(text.encode()) for _, text in texts)
    for name, mask in masks:
        seconds = []
        for _ in range(ROUNDS):
            started = time.process_time()
            for _, text in texts:
                mask(text)
            seconds.append(time.process_time() - started)
        print(f"  {name}: {size / seconds[0] / 1e6:.0f} MB/s at first, {size / min(seconds) / 1e6:.0f} MB/s then")


def masked_lines(texts: Sequence[tuple[str, str]]) -> Iterator[str]:
    for path, text in texts:
        if _TEST.search(path) or (masked := redact_secrets(text)) == text:
            continue
        for number, (before, after) in enumerate(zip(text.split("\n"), masked.split("\n"), strict=True), start=1):
            if before != after:
                at = next(place for place in range(len(before)) if before[place] != after[place : place + 1])
                yield f"{path}:{number}: {before[max(0, at - SHOWN) : at + SHOWN].strip()}"


def load_old(revision: str) -> Mask:
    """Load `redact_secrets` as it was at a revision, when all of it stood in one module."""
    source = subprocess.run(
        ["git", "-C", str(_ROOT), "show", f"{revision}:indexer/secrets.py"], capture_output=True, check=True
    ).stdout
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "old_secrets.py"
        path.write_bytes(source)
        spec = spec_from_file_location("old_secrets", path)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules["old_secrets"] = module_from_spec(spec)
        spec.loader.exec_module(module)
    old: Mask = module.redact
    return old


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--values", type=int, default=10_000, help="random values of each form; 0 for none")
    parser.add_argument("--old", help="a revision to compare with")
    parser.add_argument("repositories", nargs="*", type=Path)
    given = parser.parse_args()
    masks = [*([("old", load_old(given.old))] if given.old else []), ("new", redact_secrets)]
    if given.values:
        print_leaks(masks, given.values)
    files = found = 0
    for repository in given.repositories:
        texts = list(read_texts(repository))
        print(f"\n{repository.name}: {len(texts)} files")
        print_speed(masks, texts)
        lines = list(masked_lines(texts))
        print(*(f"  {line}" for line in lines), sep="\n")
        files += sum(not _TEST.search(path) for path, _ in texts)
        found += len(lines)
    print(f"\n{found} lines masked in {files} files outside of tests")


if __name__ == "__main__":
    main()
