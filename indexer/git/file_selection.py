"""Selects the files to index: by name and size before they are read, and by content afterwards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import translate
from pathlib import PurePosixPath
from typing import Literal

from indexer.git.gitattributes import UNMARKED, FileAttributes
from indexer.secrets import redact_secrets
from indexer.text.decoding import is_binary, is_lfs_pointer
from indexer.text.globs import compile_globs

Reason = Literal[
    "excluded",
    "secret-bearing",
    "binary",
    "lock file",
    "vendored",
    "generated",
    "minified",
    "translation",
    "source map",
    "data",
    "too large",
    "LFS pointer",
]

MAX_BYTES = 1_000_000
MAX_LARGE_BYTES = 20_000_000
_KB = 1000


def _compile_patterns(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)))


_BINARY = frozenset(
    """.png .jpg .jpeg .gif .bmp .ico .icns .webp .avif .tif .tiff .psd .ai .eps .heic .xcf .sketch .fig
    .mp3 .mp4 .m4a .wav .ogg .oga .flac .avi .mov .mkv .webm .wmv .aac .mid
    .woff .woff2 .ttf .otf .eot .pfb .pdf .doc .docx .xls .xlsx .ppt .pptx .odt .ods .odp .odg .epub .key
    .zip .gz .tgz .bz2 .xz .7z .rar .tar .zst .lz4 .jar .war .ear .aar .whl .egg .gem .nupkg .deb .rpm .dmg .iso
    .apk .ipa .exe .dll .so .dylib .a .lib .o .obj .ko .class .pyc .pyo .pyd .wasm .bin .dat .elf .pdb .node
    .nib .rlib .rmeta .db .sqlite .sqlite3 .mdb .parquet .feather .arrow .avro .orc .npy .npz .pkl .pickle .joblib
    .h5 .hdf5 .pt .pth .onnx .safetensors .gguf .tflite .pb .blend .fbx .glb .stl .swf .bundle .pack .idx .crt .cer .der
    .p7b .gpg .sig""".split()
)
_LOCK_NAMES = frozenset(
    """package-lock.json npm-shrinkwrap.json pnpm-lock.yaml bun.lockb packages.lock.json project.assets.json go.sum
    go.work.sum gradle.lockfile conda-lock.yml .terraform.lock.hcl package.resolved cabal.project.freeze
    module.bazel.lock""".split()
)
_VENDORED_FOLDERS = frozenset(
    """vendor vendored _vendor _vendored third_party third-party thirdparty 3rdparty 3rd_party node_modules
    bower_components jspm_packages web_modules Godeps Pods Carthage .yarn dist site-packages .venv venv .tox .nox .eggs
    .mypy_cache .pytest_cache .ruff_cache __pycache__ .idea .gradle .terraform .next .nuxt .git .hg .svn""".split()
)
_GENERATED = _compile_patterns(
    """*_pb2.py *_pb2.pyi *_pb2_grpc.py *_pb2_grpc.pyi *_pb.js *_pb.ts *_pb.d.ts *_grpc_pb.js *_pb.rb *_pb.php
    *.pb.go *.pb.gw.go *_grpc.pb.go *.pb.cc *.pb.h *.pb.swift *.pb.validate.go *.g.dart *.freezed.dart
    *.gr.dart *.g.cs *.g.i.cs *.designer.cs *.generated.* *.gen.go *.gen.ts zz_generated* bindata.go *.snap
    r.java *_generated.go *_generated.h *_generated.rs *_generated.ts""".split()
)
_MINIFIED = _compile_patterns("*.min.js *.min.mjs *.min.cjs *.min.css *-min.js *-min.css *.bundle.js *.pack.js".split())
_TRANSLATIONS = frozenset({".po", ".pot", ".mo", ".xlf", ".xliff", ".qm"})
# Formats that hold data more often than source code, and the size in bytes up to which a file counts as source code.
_DATA_LIMITS = {
    ".json": 200 * _KB, ".json5": 200 * _KB, ".xml": 200 * _KB, ".yaml": 500 * _KB, ".yml": 500 * _KB,
    ".sql": 500 * _KB, ".html": 500 * _KB, ".txt": 500 * _KB, ".csv": 50 * _KB,
    ".tsv": 50 * _KB, ".jsonl": 50 * _KB, ".ndjson": 50 * _KB, ".geojson": 50 * _KB, ".log": 50 * _KB, ".svg": 10 * _KB,
}  # fmt: skip
_PROSE = frozenset({".ipynb", ".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc", ".asciidoc", ".org", ".tex"})

_SECRET_SUFFIXES = frozenset(".pem .key .p12 .pfx .jks .keystore .ppk .kdbx .tfstate .kubeconfig .ovpn".split())
_SECRET_NAMES = frozenset(
    """.npmrc .pypirc .netrc _netrc .git-credentials .dockercfg .dockerconfigjson .htpasswd .pgpass .my.cnf .vault-token
    .s3cfg .boto .envrc kubeconfig credentials id_rsa id_dsa id_ecdsa id_ecdsa_sk id_ed25519 id_ed25519_sk
    terraform.tfstate.backup""".split()
)
_SECRET_FORMS = _compile_patterns(
    """credentials*.json credentials*.y*ml credentials*.ini credentials*.toml credentials*.cfg credentials*.csv
    credentials*.txt credentials*.xml credentials*.properties credentials*.enc service-account*.json
    service_account*.json *-service-account.json *.tfstate.*""".split()
)
_SECRET_PATHS = ("/.docker/config.json", "/.aws/config", "/.kube/config")
_ENVIRONMENT = re.compile(r"\.env(?:[._-].*)?|.+\.env(?:\.local)?")
_HARMLESS = re.compile(
    r"[._-](?:example|examples|sample|samples|template|tmpl|dist|defaults?|schema)(?:$|[._-])|^(?:example|sample|template)\b"
)

# Comments of generators at the top of their output.
_COMMENT = r"^[ \t]*(?://|#|/?\*|--|<!--|;|%|\"\"\"|'''|\{-|\(\*|REM\b|\.\.)[^\n]*"
_MARKED = re.compile(
    rf"{_COMMENT}(?:\bcode generated\b[^\n]*\bdo not edit\b|(?<![\w`\"'])@generated\b(?![`\"'-])|<auto-?generated\b)",
    re.IGNORECASE | re.MULTILINE,
)
_BY_GENERATOR = re.compile(
    rf"{_COMMENT}\b(?:auto-?generated|generated (?:by|from|using|with|automatically)|automatically generated)\b",
    re.IGNORECASE | re.MULTILINE,
)
_HANDS_OFF = re.compile(
    rf"{_COMMENT}\b(?:do not|don't|never) (?:manually )?(?:edit|modify|change|touch)\b", re.IGNORECASE | re.MULTILINE
)
_HEAD = 2000  # bytes at the top that are searched for such a comment
_LONG_LINE = 1000  # bytes; people break lines long before that


class FileSelection:
    """The operator's globs, written as in `.gitignore`: `exclude` wins, and `include`, if given, restricts.

    Files of `large` are indexed up to 20 MB, whatever their kind.
    """

    def __init__(self, include: Sequence[str] = (), exclude: Sequence[str] = (), large: Sequence[str] = ()) -> None:
        self._include = compile_globs(include) if include else None
        self._exclude = compile_globs(exclude) if exclude else None
        self._large = compile_globs(large) if large else None

    def is_selected(self, path: str) -> bool:
        """Whether the operator wants a file."""
        if self._exclude is not None and self._exclude.match_file(path):
            return False
        return self._include is None or self._include.match_file(path)

    def is_large(self, path: str) -> bool:
        """Whether the operator has raised the size limit for a file."""
        return self._large is not None and self._large.match_file(path)


def judge_path(path: str, size: int, marks: FileAttributes = UNMARKED) -> Reason | None:
    """Return why a file is not indexed, as far as known before reading it, or None.

    `linguist-vendored=false` and `linguist-generated=false` rule out only that reason.
    """
    name = PurePosixPath(path).name.lower()
    if _has_secret_name(path.lower(), name) or redact_secrets(path) != path:  # a name is shown wherever its file is
        return "secret-bearing"
    vendored = not _VENDORED_FOLDERS.isdisjoint(path.split("/")[:-1]) if marks.vendored is None else marks.vendored
    if vendored:
        return "vendored"
    generated = bool(_GENERATED.match(name)) if marks.generated is None else marks.generated
    return "generated" if generated else _judge_format(name, size, marks)


def judge_content(path: str, data: bytes, marks: FileAttributes = UNMARKED) -> Reason | None:
    """Return why a file is not indexed, given its bytes, or None."""
    if len(data) > _find_limit(PurePosixPath(path).suffix.lower(), marks):
        return "too large"
    if is_lfs_pointer(data):
        return "LFS pointer"
    if is_binary(data):
        return "binary"
    head = data[:_HEAD].decode("latin-1")
    if marks.generated is not False and "generated" in head.lower():
        is_generated = _MARKED.search(head) or (_BY_GENERATOR.search(head) and _HANDS_OFF.search(head))
        if is_generated:
            return "generated"
    return "minified" if _is_minified(path, data) else None


def _has_secret_name(path: str, name: str) -> bool:
    if name in _SECRET_NAMES or PurePosixPath(name).suffix in _SECRET_SUFFIXES or f"/{path}".endswith(_SECRET_PATHS):
        return True
    return bool(_ENVIRONMENT.fullmatch(name) or _SECRET_FORMS.match(name)) and not _HARMLESS.search(name)


def _judge_format(name: str, size: int, marks: FileAttributes) -> Reason | None:
    suffix = PurePosixPath(name).suffix
    by_name: tuple[tuple[bool, Reason], ...] = (
        (suffix in _BINARY, "binary"),
        (suffix in {".lock", ".lockfile"} or name in _LOCK_NAMES, "lock file"),
        (bool(_MINIFIED.match(name)), "minified"),
        (suffix in _TRANSLATIONS, "translation"),
        (suffix == ".map", "source map"),
        (not marks.is_large and size > _DATA_LIMITS.get(suffix, size), "data"),
        (size > _find_limit(suffix, marks), "too large"),
    )
    return next((reason for applies, reason in by_name if applies), None)


def _find_limit(suffix: str, marks: FileAttributes) -> int:
    """Return the byte limit of a file; most of a notebook is outputs, which are removed before it is judged."""
    return MAX_LARGE_BYTES if suffix == ".ipynb" or marks.is_large else MAX_BYTES


def _is_minified(path: str, data: bytes) -> bool:
    """Whether most of the bytes are in lines too long to be written by hand."""
    if len(data) < 5 * _LONG_LINE or PurePosixPath(path).suffix.lower() in _PROSE:
        return False
    if len(data) < 150 * (data.count(b"\n") + 1):
        return False
    long = sum(len(line) for line in data.split(b"\n") if len(line) > _LONG_LINE)
    return long > 0.8 * len(data)
