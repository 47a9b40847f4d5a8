"""An operator's folder with a classifier of injections: its files, their checksum, and the meaning of its labels."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent.errors import ClassifierUnusable

MODEL, TOKENIZER, CONFIG = "model.onnx", "tokenizer.json", "config.json"
FILES = (CONFIG, MODEL, TOKENIZER)

# How published classifiers call what they found; any other label is not guessed at.
ATTACK_LABELS = frozenset({"INJECTION", "MALICIOUS", "JAILBREAK", "UNSAFE"})
HARMLESS_LABELS = frozenset({"SAFE", "BENIGN", "LEGIT"})
_NUMBERED = {0: "LABEL_0", 1: "LABEL_1"}  # what a model of two classes has whose author named none: 1 is the attack
_LONGEST = 512  # tokens, where the configuration does not say for how many the model was made
# A tensor in another file says so under this key; only the three files are covered by the checksum.
_ELSEWHERE = b"\n\x08location\x12"


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFiles:
    """The files of a folder with the pinned checksum; `attacks` are the places of the attacks' labels."""

    model: bytes
    tokenizer: bytes
    attacks: tuple[int, ...]
    labels: int
    max_tokens: int


def read_model_folder(folder: Path, pin: str | None) -> ModelFiles:
    """Read the files and check them against the pin; raises `ClassifierUnusable` that says what to do."""
    files = _read_files(folder)
    checksum = compute_checksum(files)
    if pin is None:
        raise ClassifierUnusable(
            f"The classifier in {folder} is not pinned. If its files are those that you trust, "
            f'put classifier_sha256 = "{checksum}" below [guard].'
        )
    if checksum != pin.lower():
        raise ClassifierUnusable(
            f"The classifier in {folder} is not the pinned one: its files have the checksum {checksum}. "
            "Put the files back, or pin these if you trust them."
        )
    if _ELSEWHERE in files[MODEL]:
        raise ClassifierUnusable(
            f"{folder / MODEL} keeps weights in another file. Save the model with all of its weights in one file."
        )
    config = _read_config(folder, files[CONFIG])
    labels = _read_labels(folder, config)
    most = config.get("max_position_embeddings")
    return ModelFiles(
        model=files[MODEL],
        tokenizer=files[TOKENIZER],
        attacks=_find_attacks(folder, labels),
        labels=len(labels),
        max_tokens=most if isinstance(most, int) and not isinstance(most, bool) and 8 <= most <= _LONGEST else _LONGEST,
    )


def compute_checksum(files: Mapping[str, bytes]) -> str:
    """Return what `sha256sum config.json model.onnx tokenizer.json | sha256sum` prints in the folder."""
    lines = (f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in FILES)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _read_files(folder: Path) -> Mapping[str, bytes]:
    try:
        return {name: (folder / name).read_bytes() for name in FILES}
    except OSError as error:
        raise ClassifierUnusable(
            f"{error.filename} cannot be read ({error.strerror}). "
            f"The folder of a classifier holds {MODEL}, {TOKENIZER} and {CONFIG}."
        ) from error


def _read_config(folder: Path, data: bytes) -> Mapping[str, object]:
    try:
        config = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ClassifierUnusable(f"{folder / CONFIG} is not JSON: {error}.") from error
    if not isinstance(config, dict):
        raise ClassifierUnusable(f"{folder / CONFIG} holds no object.")
    return config


def _read_labels(folder: Path, config: Mapping[str, object]) -> Mapping[int, str]:
    table = config.get("id2label")
    named = table.items() if isinstance(table, dict) else ()
    labels = {int(place): str(label).strip().upper() for place, label in named if str(place).isdecimal()}
    if len(labels) < 2 or len(labels) != len(named) or set(labels) != set(range(len(labels))):
        raise ClassifierUnusable(f"{folder / CONFIG} has no id2label that names each class, counted from 0.")
    return labels


def _find_attacks(folder: Path, labels: Mapping[int, str]) -> tuple[int, ...]:
    """Tell attacks from the harmless by name, and refuse labels that leave it open."""
    if labels == _NUMBERED:
        return (1,)
    attacks = tuple(sorted(place for place, label in labels.items() if label in ATTACK_LABELS))
    harmless = [place for place, label in labels.items() if label in HARMLESS_LABELS]
    if not attacks or not harmless or len(attacks) + len(harmless) != len(labels):
        listed = ", ".join(label[:40] for _, label in sorted(labels.items())[:6])
        raise ClassifierUnusable(
            f"The labels of {folder / CONFIG} ({listed}) do not say which class is an attack. "
            f"Known are {', '.join(sorted(ATTACK_LABELS))} and {', '.join(sorted(HARMLESS_LABELS))}, "
            "and LABEL_0 with LABEL_1."
        )
    return attacks
