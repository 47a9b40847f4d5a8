"""Measures what the masking of secrets misses, what it masks wrongly, and how fast it is.

    python -m benchmarks.secrets [--values 10000] [--old REVISION] [REPOSITORY ...]

Prints for every form and alphabet the share of random values of which a part can still be read, and for every form and
kind the share of passwords that people choose; for every repository the throughput, and each line outside of tests in
which something is masked, to be judged by eye. With `--old` the
masking of a revision of this repository is measured in the same run.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from indexer.secrets import redact_secrets
from tests.fakes.human_passwords import FORMS as PASSWORD_FORMS
from tests.fakes.human_passwords import KINDS, draw_passwords, shows
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


def print_shown(masks: Sequence[tuple[str, Mask]]) -> None:
    passwords = draw_passwords()
    print(f"\nShown, per cent of {len(passwords)} passwords of people ({', '.join(name for name, _ in masks)}):\n")
    shown = [
        {
            (form, number): kind
            for form, text in PASSWORD_FORMS.items()
            for number, (kind, password) in enumerate(passwords)
            if shows(password, text, mask(text.replace("{}", password)))
        }
        for _, mask in masks
    ]
    for form in PASSWORD_FORMS:
        shares = [100 * sum(each == form for each, _ in found) / len(passwords) for found in shown]
        print(f"{form:32}", " > ".join(f"{share:.1f}" for share in shares))
    for kind, (count, _) in KINDS.items():
        shares = [100 * sum(each == kind for each in found.values()) / count / len(PASSWORD_FORMS) for found in shown]
        print(f"  {kind:30}", " > ".join(f"{share:.1f}" for share in shares))


def load_old(revision: str) -> Mask:
    """Start the masking of a revision of this repository in a process of its own."""
    folder = tempfile.mkdtemp(prefix="old-secrets-")
    archive = subprocess.run(
        ["git", "-C", str(_ROOT), "archive", revision, "indexer"], capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    source = """
import json, sys
from indexer.secrets import redact_secrets
for line in sys.stdin:
    print(json.dumps(redact_secrets(json.loads(line))), flush=True)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", source], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def mask(text: str) -> str:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(text) + "\n")
        process.stdin.flush()
        return str(json.loads(process.stdout.readline()))

    return mask


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--values", type=int, default=10_000, help="random values of each form; 0 for none")
    parser.add_argument("--old", help="a revision to compare with")
    parser.add_argument("repositories", nargs="*", type=Path)
    given = parser.parse_args()
    masks = [*([("old", load_old(given.old))] if given.old else []), ("new", redact_secrets)]
    if given.values:
        print_leaks(masks, given.values)
        print_shown(masks)
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
