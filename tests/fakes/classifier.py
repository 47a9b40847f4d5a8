"""A folder with a classifier of a few kilobytes, of the form in which published ones come: for the plumbing alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from agent.guard.classifier.onnx_model import CONFIG, FILES, MODEL, TOKENIZER, compute_checksum

SUSPICIOUS = ("ignore", "instructions", "prompt", "disregard")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
WORDS = (*SPECIAL, *SUSPICIOUS)
PUBLISHED = {"0": "SAFE", "1": "INJECTION"}


def make_classifier(
    folder: Path,
    *,
    labels: Mapping[str, str] = PUBLISHED,
    attack: int = 1,
    inputs: Sequence[str] = ("input_ids", "attention_mask"),
    weight: float = 8.0,
) -> str:
    """Write the three files, and return the checksum to pin; words of `SUSPICIOUS` speak for class `attack`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MODEL).write_bytes(_make_model(max(2, len(labels)), attack, inputs, weight))
    (folder / TOKENIZER).write_text(_make_tokenizer(), encoding="utf-8")
    config = {"id2label": dict(labels), "max_position_embeddings": 512, "model_type": "deberta-v2"}
    (folder / CONFIG).write_text(json.dumps(config), encoding="utf-8")
    return checksum_of(folder)


def checksum_of(folder: Path) -> str:
    return compute_checksum({name: (folder / name).read_bytes() for name in FILES})


def _make_tokenizer() -> str:
    tokenizer = Tokenizer(WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", WORDS.index("[CLS]")), ("[SEP]", WORDS.index("[SEP]"))]
    )
    tokenizer.enable_truncation(16)  # as published ones come, for anyone who trains with them
    tokenizer.enable_padding(length=16)
    text: str = tokenizer.to_str()
    return text


def _make_model(classes: int, attack: int, inputs: Sequence[str], weight: float) -> bytes:
    """A graph that adds up what each word speaks for; other inputs it takes in, and multiplies by nought."""
    table = np.zeros((len(WORDS), classes), dtype=np.float32)
    table[WORDS.index("[CLS]"), :] = -weight / 2
    table[WORDS.index("[CLS]"), attack] = -weight
    for word in SUSPICIOUS:
        table[WORDS.index(word), attack] = weight
    nodes = [helper.make_node("Gather", ["table", inputs[0]], ["words"], axis=0)]
    last = "words"
    for place, name in enumerate(inputs[1:]):
        nodes += [
            helper.make_node("Cast", [name], [f"number{place}"], to=TensorProto.FLOAT),
            helper.make_node("Mul", [f"number{place}", "nought"], [f"nothing{place}"]),
            helper.make_node("Unsqueeze", [f"nothing{place}", "last_axis"], [f"column{place}"]),
            helper.make_node("Add", [last, f"column{place}"], [f"sum{place}"]),
        ]
        last = f"sum{place}"
    nodes.append(helper.make_node("ReduceSum", [last, "word_axis"], ["logits"], keepdims=0))
    constants = [
        numpy_helper.from_array(table, "table"),
        numpy_helper.from_array(np.zeros((), dtype=np.float32), "nought"),
        numpy_helper.from_array(np.array([-1], dtype=np.int64), "last_axis"),
        numpy_helper.from_array(np.array([1], dtype=np.int64), "word_axis"),
    ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"]) for name in inputs],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", classes])],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    onnx.checker.check_model(model)
    data: bytes = model.SerializeToString()
    return data
