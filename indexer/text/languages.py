"""Which language a file is written in, judged by its name and, where that is not enough, by its first lines."""

from __future__ import annotations

import re
from functools import cache

_SUFFIXES = {
    "python": "py pyi pyw",
    "javascript": "js jsx mjs cjs",
    "typescript": "ts mts cts",
    "tsx": "tsx",
    "go": "go",
    "rust": "rs",
    "java": "java",
    "kotlin": "kt kts",
    "c": "c",
    "cpp": "cc cpp cxx c++ hh hpp hxx h++ ipp inl tpp cu cuh ino",
    "csharp": "cs csx",
    "ruby": "rb rake gemspec ru podspec",
    "php": "php phtml php5",
    "swift": "swift",
    "scala": "scala sc sbt",
    "lua": "lua",
    "bash": "sh bash zsh ksh bats",
    "elixir": "ex exs",
    "haskell": "hs",
    "zig": "zig zon",
    "markdown": "md mdx markdown mdown",
    "rst": "rst",
    "asciidoc": "adoc asciidoc",
    "text": "txt text",
    "json": "json jsonc json5 geojson",
    "toml": "toml",
    "yaml": "yaml yml",
    "ini": "ini cfg conf properties editorconfig",
    "xml": "xml xsd xsl xslt csproj props targets plist",
    "html": "html htm xhtml",
    "css": "css scss sass less",
    "sql": "sql",
    "graphql": "graphql gql",
    "protobuf": "proto",
    "terraform": "tf tfvars hcl",
    "cmake": "cmake",
    "makefile": "mk mak",
    "dockerfile": "dockerfile",
    "groovy": "groovy gradle",
    "vue": "vue",
    "svelte": "svelte",
    "perl": "pl pm",
    "r": "r",
    "julia": "jl",
    "dart": "dart",
    "clojure": "clj cljs cljc edn",
    "erlang": "erl hrl",
    "ocaml": "ml mli",
    "fsharp": "fs fsi fsx",
    "objective-c": "m mm",
    "powershell": "ps1 psm1 psd1",
    "batch": "bat cmd",
    "nix": "nix",
    "jinja": "j2 jinja jinja2",
    "notebook": "ipynb",
    "csv": "csv tsv",
}

_NAMES = {
    "makefile": "makefile gnumakefile",
    "dockerfile": "dockerfile containerfile",
    "cmake": "cmakelists.txt",
    "ruby": "gemfile rakefile podfile vagrantfile guardfile brewfile capfile fastfile",
    "python": "sconstruct sconscript wscript",
    "groovy": "jenkinsfile",
    "go-module": "go.mod go.work",
    "bash": ".bashrc .bash_profile .bash_aliases .profile .zshrc .zprofile .envrc pkgbuild",
    "toml": "cargo.lock poetry.lock uv.lock pipfile",
    "json": "pipfile.lock composer.lock .babelrc .eslintrc .prettierrc",
    "ini": ".gitconfig .gitmodules .editorconfig .flake8 .pylintrc .npmrc .coveragerc",
    "yaml": ".clang-format .clang-tidy",
}

# What follows `#!`, past `env` and its options; a version may follow the name.
_SHEBANG = re.compile(r"#!\s*\S*?(?:\benv\s+(?:-\S+\s+|\w+=\S+\s+)*)?([\w.+-]+?)[\d.]*(?:\s|$)")
_INTERPRETERS = {
    "python": "python", "pypy": "python", "node": "javascript", "nodejs": "javascript", "bun": "javascript",
    "deno": "typescript", "ts-node": "typescript", "tsx": "typescript", "ruby": "ruby", "php": "php", "sh": "bash",
    "bash": "bash", "zsh": "bash", "dash": "bash", "ksh": "bash", "bats": "bash", "lua": "lua", "luajit": "lua",
    "elixir": "elixir", "runghc": "haskell", "runhaskell": "haskell", "scala": "scala", "swift": "swift",
    "kotlin": "kotlin", "perl": "perl", "make": "makefile", "rscript": "r", "julia": "julia",
}  # fmt: skip

# Signs of C++ that prose in a C comment does not show.
_CPP_HEADER = re.compile(
    r"^[^\S\n]*(?:class\s+\w+(?:\s+\w+)?\s*(?:$|[:;{])|namespace\s+[\w:]+\s*(?:$|[{=])|template\s*<|using\s+\w+(?:\s+|(?=[=:;]))[=:;\w]*;"
    r"|(?:public|private|protected):\s*$)|\b(?:constexpr|nullptr|noexcept)\b|\w::\w|^[^\S\n]*#\s*include\s*<\w+>",
    re.MULTILINE,
)
_OBJECTIVE_C_HEADER = re.compile(r"^[^\S\n]*@(?:interface|protocol|class)\b", re.MULTILINE)


def detect_language(path: str, text: str) -> str:
    """Return the language of a file as a lower-case name, `text` when nothing speaks for another."""
    name = path.rpartition("/")[2].lower()
    stem, dot, suffix = name.rpartition(".")
    if name in _by_name():
        return _by_name()[name]
    if dot and suffix == "h":
        return _header_language(text)
    if dot and suffix in _by_suffix():
        return _by_suffix()[suffix]
    # Dockerfile.dev, Makefile.am: the well-known name comes first.
    return _by_name().get(stem.partition(".")[0]) or _by_shebang(text) or "text"


@cache
def _by_name() -> dict[str, str]:
    return {name: language for language, names in _NAMES.items() for name in names.split()}


@cache
def _by_suffix() -> dict[str, str]:
    return {suffix: language for language, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}


def _header_language(text: str) -> str:
    if _OBJECTIVE_C_HEADER.search(text):
        return "objective-c"
    return "cpp" if _CPP_HEADER.search(text) else "c"


def _by_shebang(text: str) -> str | None:
    if not text.startswith("#!"):
        return None
    first_line = text[:200].partition("\n")[0]
    interpreter = _SHEBANG.match(first_line)
    return _INTERPRETERS.get(interpreter[1].lower()) if interpreter else None
