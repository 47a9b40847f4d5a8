"""The languages of files: their names, how to recognize their files, and how to parse and read them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class Grammar:
    """The parsing of one language.

    `package` is the wheel that carries the tree-sitter parser, `entry` its function, `bundled` its name in the wheel of
    many grammars, which is used where the own one is not installed, and `query` the file in `indexer/parsing/queries`
    that says what to look for. `leading` are node types that belong to the definition below
    them, as comments do. `separator` joins the parts of an imported path; where `names_imports` is off, a path names a
    module as a whole. `joins_clauses` makes one symbol of neighbours that share a name, and `has_docstrings` reads
    documentation from the start of a body. `is_narrow` says that the parser looks characters up in a table of Latin
    letters and ends the process over some that are beyond it: it is shown ASCII in their place.
    """

    query: str
    package: str = ""
    entry: str = "language"
    bundled: str = ""
    leading: frozenset[str] = frozenset()
    separator: str = "."
    names_imports: bool = True
    joins_clauses: bool = False
    has_docstrings: bool = False
    is_narrow: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Language:
    """The facts about one language; most are optional.

    `spoken_names` are its names for people, the first for display; entries that share a name are one language to
    people. `endings` and `file_names` are lower-case; `shared_endings` belong to several languages, of which
    `detect_language` picks one by the text. `interpreters` follow `#!`. `has_brace_blocks` is off if a brace opens a
    collection and no block. `type_place` is the side of a variable on which its type is written, and languages of one
    `family` call each other's definitions. `ctags` is a file name by which universal-ctags knows a language without a
    grammar.
    """

    name: str
    spoken_names: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    shared_endings: tuple[str, ...] = ()
    file_names: tuple[str, ...] = ()
    interpreters: tuple[str, ...] = ()
    line_comments: tuple[str, ...] = ()
    has_brace_blocks: bool = True
    type_place: Literal["before", "after"] | None = None
    family: str = ""
    grammar: Grammar | None = None
    ctags: str = ""

    @property
    def label(self) -> str:
        """The displayed name."""
        return (*self.spoken_names, self.name)[0]


# Their files hold code in other languages, which `indexer.parsing.containers` finds.
CONTAINERS = frozenset("vue html svelte astro erb ejs jinja blade razor markdown mdx notebook".split())
ANY = "any"  # the family of files that hold code in several languages
_DECORATOR = frozenset({"decorator"})

LANGUAGES: tuple[Language, ...] = (
    Language(
        name="python",
        spoken_names=("Python",),
        endings=("py", "pyi", "pyw"),
        file_names=("sconstruct", "sconscript", "wscript"),
        interpreters=("python", "pypy"),
        line_comments=("#",),
        has_brace_blocks=False,
        type_place="after",
        grammar=Grammar(package="tree_sitter_python", query="python", has_docstrings=True),
    ),
    Language(
        name="javascript",
        spoken_names=("JavaScript", "js"),
        endings=("js", "jsx", "mjs", "cjs"),
        interpreters=("node", "nodejs", "bun"),
        line_comments=("//",),
        family="script",
        grammar=Grammar(package="tree_sitter_javascript", query="javascript", leading=_DECORATOR),
    ),
    Language(
        name="typescript",
        spoken_names=("TypeScript", "ts"),
        endings=("ts", "mts", "cts"),
        interpreters=("deno", "ts-node", "tsx"),
        line_comments=("//",),
        type_place="after",
        family="script",
        grammar=Grammar(
            package="tree_sitter_typescript", query="typescript", entry="language_typescript", leading=_DECORATOR
        ),
    ),
    Language(
        name="tsx",
        spoken_names=("TypeScript",),
        endings=("tsx",),
        line_comments=("//",),
        type_place="after",
        family="script",
        grammar=Grammar(package="tree_sitter_typescript", query="tsx", entry="language_tsx", leading=_DECORATOR),
    ),
    Language(
        name="go",
        spoken_names=("Go", "golang"),
        endings=("go",),
        line_comments=("//",),
        grammar=Grammar(package="tree_sitter_go", query="go", separator="/"),
    ),
    Language(
        name="rust",
        spoken_names=("Rust",),
        endings=("rs",),
        line_comments=("//",),
        type_place="after",
        grammar=Grammar(
            package="tree_sitter_rust", query="rust", leading=frozenset({"attribute_item"}), separator="::"
        ),
    ),
    Language(
        name="java",
        spoken_names=("Java",),
        endings=("java",),
        line_comments=("//",),
        type_place="before",
        family="jvm",
        grammar=Grammar(package="tree_sitter_java", query="java"),
    ),
    Language(
        name="kotlin",
        spoken_names=("Kotlin",),
        endings=("kt", "kts"),
        interpreters=("kotlin",),
        line_comments=("//",),
        type_place="after",
        family="jvm",
        grammar=Grammar(package="tree_sitter_kotlin", query="kotlin"),
    ),
    Language(
        name="c",
        spoken_names=("C",),
        endings=("c",),
        shared_endings=("h",),
        line_comments=("//",),
        type_place="before",
        grammar=Grammar(package="tree_sitter_c", query="c"),
    ),
    Language(
        name="cpp",
        spoken_names=("C++",),
        endings=("cc", "cpp", "cxx", "c++", "hh", "hpp", "hxx", "h++", "ipp", "inl", "tpp", "cu", "cuh", "ino"),
        shared_endings=("h",),
        line_comments=("//",),
        type_place="before",
        family="c",
        grammar=Grammar(package="tree_sitter_cpp", query="cpp"),
    ),
    Language(
        name="csharp",
        spoken_names=("C#",),
        endings=("cs", "csx"),
        line_comments=("//",),
        type_place="before",
        grammar=Grammar(package="tree_sitter_c_sharp", query="csharp", names_imports=False),
    ),
    Language(
        name="ruby",
        spoken_names=("Ruby",),
        endings=("rb", "rake", "gemspec", "ru", "podspec"),
        file_names=("gemfile", "rakefile", "podfile", "vagrantfile", "guardfile", "brewfile", "capfile", "fastfile"),
        interpreters=("ruby",),
        line_comments=("#",),
        has_brace_blocks=False,
        grammar=Grammar(package="tree_sitter_ruby", query="ruby"),
    ),
    Language(
        name="php",
        spoken_names=("PHP",),
        endings=("php", "phtml", "php5"),
        interpreters=("php",),
        line_comments=("//", "#"),
        type_place="before",
        grammar=Grammar(package="tree_sitter_php", query="php", entry="language_php", separator="\\"),
    ),
    Language(
        name="swift",
        spoken_names=("Swift",),
        endings=("swift",),
        interpreters=("swift",),
        line_comments=("//",),
        type_place="after",
        grammar=Grammar(package="tree_sitter_swift", query="swift", names_imports=False),
    ),
    Language(
        name="scala",
        spoken_names=("Scala",),
        endings=("scala", "sc", "sbt"),
        interpreters=("scala",),
        line_comments=("//",),
        type_place="after",
        family="jvm",
        grammar=Grammar(package="tree_sitter_scala", query="scala"),
    ),
    Language(
        name="lua",
        spoken_names=("Lua",),
        endings=("lua",),
        interpreters=("lua", "luajit"),
        line_comments=("--",),
        has_brace_blocks=False,
        grammar=Grammar(package="tree_sitter_lua", query="lua"),
    ),
    Language(
        name="bash",
        spoken_names=("Bash",),
        endings=("sh", "bash", "zsh", "ksh", "bats"),
        file_names=(
            ".bashrc",
            ".bash_profile",
            ".bash_aliases",
            ".profile",
            ".zshrc",
            ".zprofile",
            ".envrc",
            "pkgbuild",
        ),
        interpreters=("sh", "bash", "zsh", "dash", "ksh", "bats"),
        line_comments=("#",),
        grammar=Grammar(package="tree_sitter_bash", query="bash", is_narrow=True),
    ),
    Language(
        name="elixir",
        spoken_names=("Elixir",),
        endings=("ex", "exs"),
        interpreters=("elixir",),
        line_comments=("#",),
        has_brace_blocks=False,
        grammar=Grammar(
            package="tree_sitter_elixir",
            query="elixir",
            leading=frozenset({"unary_operator"}),
            joins_clauses=True,
            names_imports=False,
        ),
    ),
    Language(
        name="haskell",
        spoken_names=("Haskell",),
        endings=("hs",),
        interpreters=("runghc", "runhaskell"),
        line_comments=("--",),
        has_brace_blocks=False,
        grammar=Grammar(
            package="tree_sitter_haskell",
            query="haskell",
            leading=frozenset({"haddock", "signature"}),
            joins_clauses=True,
        ),
    ),
    Language(
        name="zig",
        spoken_names=("Zig",),
        endings=("zig", "zon"),
        line_comments=("//",),
        type_place="after",
        grammar=Grammar(package="tree_sitter_zig", query="zig"),
    ),
    Language(name="markdown", endings=("md", "markdown", "mdown", "qmd", "rmd"), family=ANY),
    Language(name="mdx", endings=("mdx",), family="script"),
    Language(name="rst", endings=("rst",)),
    Language(name="asciidoc", endings=("adoc", "asciidoc")),
    Language(name="text", endings=("txt", "text")),
    Language(
        name="json",
        endings=("json", "jsonc", "json5", "geojson"),
        file_names=("pipfile.lock", "composer.lock", ".babelrc", ".eslintrc", ".prettierrc"),
    ),
    Language(
        name="toml",
        endings=("toml",),
        file_names=("cargo.lock", "poetry.lock", "uv.lock", "pipfile"),
        line_comments=("#",),
        has_brace_blocks=False,
    ),
    Language(
        name="yaml",
        endings=("yaml", "yml"),
        spoken_names=("YAML",),
        file_names=(".clang-format", ".clang-tidy"),
        line_comments=("#",),
        has_brace_blocks=False,
        grammar=Grammar(package="tree_sitter_yaml", bundled="yaml", query="yaml"),
    ),
    Language(
        name="ini",
        endings=("ini", "cfg", "conf", "properties", "editorconfig"),
        file_names=(".gitconfig", ".gitmodules", ".editorconfig", ".flake8", ".pylintrc", ".npmrc", ".coveragerc"),
        line_comments=("#", ";"),
    ),
    Language(name="xml", endings=("xml", "xsd", "xsl", "xslt", "csproj", "props", "targets", "plist")),
    Language(name="html", endings=("html", "htm", "xhtml"), family=ANY),
    Language(name="css", endings=("css", "scss", "sass", "less")),
    Language(
        name="sql",
        spoken_names=("SQL",),
        endings=("sql", "ddl"),
        line_comments=("--",),
        family=ANY,
        grammar=Grammar(package="tree_sitter_sql", bundled="sql", query="sql"),
    ),
    Language(
        name="graphql",
        spoken_names=("GraphQL",),
        endings=("graphql", "gql", "graphqls"),
        line_comments=("#",),
        grammar=Grammar(bundled="graphql", query="graphql"),
    ),
    Language(
        name="protobuf",
        spoken_names=("Protobuf", "proto"),
        endings=("proto",),
        line_comments=("//",),
        grammar=Grammar(bundled="proto", query="proto"),
    ),
    Language(
        name="terraform",
        spoken_names=("Terraform", "HCL"),
        endings=("tf", "tfvars", "hcl"),
        line_comments=("#", "//"),
        grammar=Grammar(package="tree_sitter_hcl", bundled="hcl", query="hcl"),
    ),
    Language(
        name="cmake",
        spoken_names=("CMake",),
        endings=("cmake",),
        file_names=("cmakelists.txt",),
        line_comments=("#",),
        grammar=Grammar(bundled="cmake", query="cmake"),
    ),
    Language(
        name="makefile",
        endings=("mk", "mak"),
        file_names=("makefile", "gnumakefile"),
        spoken_names=("Make",),
        interpreters=("make",),
        line_comments=("#",),
        has_brace_blocks=False,
        grammar=Grammar(package="tree_sitter_make", bundled="make", query="make"),
    ),
    Language(
        name="dockerfile",
        spoken_names=("Dockerfile",),
        endings=("dockerfile",),
        file_names=("dockerfile", "containerfile"),
        line_comments=("#",),
        grammar=Grammar(package="tree_sitter_containerfile", query="dockerfile"),
    ),
    Language(
        name="groovy",
        endings=("groovy", "gradle"),
        spoken_names=("Groovy",),
        file_names=("jenkinsfile",),
        line_comments=("//",),
        type_place="before",
        family="jvm",
        grammar=Grammar(package="dekobon_tree_sitter_groovy", query="groovy"),
    ),
    Language(name="vue", spoken_names=("Vue",), endings=("vue",), family="script"),
    Language(name="svelte", spoken_names=("Svelte",), endings=("svelte",), family="script"),
    Language(name="astro", spoken_names=("Astro",), endings=("astro",), family="script"),
    Language(name="erb", endings=("erb", "rhtml"), family="ruby"),
    Language(name="ejs", endings=("ejs",), family="script"),
    Language(name="blade", endings=("blade.php",), family="php"),
    Language(name="razor", endings=("cshtml", "razor"), family="csharp"),
    Language(
        name="perl",
        spoken_names=("Perl",),
        endings=("pl", "pm", "t"),
        interpreters=("perl",),
        line_comments=("#",),
        grammar=Grammar(package="tree_sitter_perl", query="perl", separator="::"),
    ),
    Language(
        name="r",
        spoken_names=("R",),
        endings=("r",),
        interpreters=("rscript",),
        line_comments=("#",),
        grammar=Grammar(bundled="r", query="r"),
    ),
    Language(
        name="julia",
        spoken_names=("Julia",),
        endings=("jl",),
        interpreters=("julia",),
        line_comments=("#",),
        grammar=Grammar(package="tree_sitter_julia", query="julia"),
    ),
    Language(
        name="dart",
        spoken_names=("Dart",),
        endings=("dart",),
        type_place="before",
        line_comments=("//",),
        grammar=Grammar(package="tree_sitter_dart", bundled="dart", query="dart"),
    ),
    Language(
        name="clojure",
        spoken_names=("Clojure",),
        endings=("clj", "cljs", "cljc", "edn"),
        has_brace_blocks=False,
        line_comments=(";",),
        grammar=Grammar(bundled="clojure", query="clojure", separator="/"),
    ),
    Language(
        name="erlang",
        spoken_names=("Erlang",),
        endings=("erl", "hrl"),
        has_brace_blocks=False,
        line_comments=("%",),
        grammar=Grammar(bundled="erlang", query="erlang", joins_clauses=True),
    ),
    Language(
        name="ocaml",
        spoken_names=("OCaml",),
        endings=("ml",),
        has_brace_blocks=False,
        line_comments=("(*",),
        grammar=Grammar(package="tree_sitter_ocaml", entry="language_ocaml", bundled="ocaml", query="ocaml"),
    ),
    Language(
        name="fsharp",
        spoken_names=("F#",),
        endings=("fs", "fsi", "fsx"),
        has_brace_blocks=False,
        line_comments=("//",),
        grammar=Grammar(package="tree_sitter_fsharp", query="fsharp"),
    ),
    Language(
        name="objective-c",
        spoken_names=("Objective-C",),
        endings=("m", "mm"),
        shared_endings=("h",),
        line_comments=("//",),
        family="c",
        grammar=Grammar(package="tree_sitter_objc", bundled="objc", query="objc"),
    ),
    Language(
        name="powershell",
        spoken_names=("PowerShell",),
        endings=("ps1", "psm1", "psd1"),
        interpreters=("pwsh",),
        line_comments=("#",),
        grammar=Grammar(package="tree_sitter_powershell", bundled="powershell", query="powershell"),
    ),
    Language(
        name="solidity",
        spoken_names=("Solidity",),
        endings=("sol",),
        type_place="before",
        line_comments=("//",),
        grammar=Grammar(package="tree_sitter_solidity", bundled="solidity", query="solidity"),
    ),
    Language(
        name="fortran",
        spoken_names=("Fortran",),
        endings=("f90", "f95", "f03", "f08", "f", "for"),
        has_brace_blocks=False,
        line_comments=("!",),
        grammar=Grammar(package="tree_sitter_fortran", bundled="fortran", query="fortran"),
    ),
    Language(
        name="nix",
        spoken_names=("Nix",),
        endings=("nix",),
        has_brace_blocks=False,
        line_comments=("#",),
        grammar=Grammar(package="tree_sitter_nix", bundled="nix", query="nix"),
    ),
    Language(name="ocaml-interface", endings=("mli",), family="ocaml"),
    Language(name="batch", endings=("bat", "cmd"), ctags="a.bat"),
    Language(name="ada", spoken_names=("Ada",), endings=("adb", "ads", "ada"), line_comments=("--",), ctags="a.adb"),
    Language(name="assembly", spoken_names=("Assembly", "assembler"), endings=("asm", "s", "nasm"), ctags="a.asm"),
    Language(name="awk", spoken_names=("AWK",), endings=("awk",), line_comments=("#",), ctags="a.awk"),
    Language(name="cobol", spoken_names=("COBOL",), endings=("cob", "cbl", "cpy"), ctags="a.cbl"),
    Language(name="d", spoken_names=("D language", "dlang"), endings=("d",), line_comments=("//",), ctags="a.d"),
    Language(name="elm", spoken_names=("Elm",), endings=("elm",), line_comments=("--",), ctags="a.elm"),
    Language(name="emacs-lisp", spoken_names=("Emacs Lisp",), endings=("el",), line_comments=(";",), ctags="a.el"),
    Language(name="haxe", spoken_names=("Haxe",), endings=("hx",), line_comments=("//",), ctags="a.hx"),
    Language(name="lisp", spoken_names=("Common Lisp",), endings=("lisp", "lsp"), line_comments=(";",), ctags="a.lisp"),
    Language(name="pascal", spoken_names=("Pascal",), endings=("pas", "dpr", "lpr"), ctags="a.pas"),
    Language(name="puppet", endings=("pp",), line_comments=("#",), ctags="a.pp"),
    Language(name="scheme", endings=("scm", "rkt"), line_comments=(";",), ctags="a.scm"),
    Language(name="systemverilog", spoken_names=("SystemVerilog",), endings=("sv", "svh"), ctags="a.sv"),
    Language(name="tcl", spoken_names=("Tcl",), endings=("tcl",), line_comments=("#",), ctags="a.tcl"),
    Language(name="verilog", spoken_names=("Verilog",), endings=("v",), line_comments=("//",), ctags="a.v"),
    Language(name="vhdl", spoken_names=("VHDL",), endings=("vhd", "vhdl"), line_comments=("--",), ctags="a.vhd"),
    Language(name="vim", spoken_names=("Vim script", "vimscript"), endings=("vim",), ctags="a.vim"),
    Language(name="jinja", endings=("j2", "jinja", "jinja2", "njk", "twig", "liquid"), family=ANY),
    Language(name="notebook", spoken_names=("Jupyter",), endings=("ipynb",), family="python"),
    Language(name="csv", endings=("csv", "tsv")),
    Language(name="go-module", file_names=("go.mod", "go.work")),
)

# The text after `#!`, past `env` and its options; a version may follow the name.
_SHEBANG = re.compile(r"#!\s*\S*?(?:\benv\s+(?:-\S+\s+|\w+=\S+\s+)*)?([\w.+-]+?)[\d.]*(?:\s|$)")

# Signs of C++ that prose in a C comment does not show.
_CPP_HEADER = re.compile(
    r"^[^\S\n]*(?:class\s+\w+(?:\s+\w+)?\s*(?:$|[:;{])|namespace\s+[\w:]+\s*(?:$|[{=])|template\s*<|using\s+\w+(?:\s+|(?=[=:;]))[=:;\w]*;"
    r"|(?:public|private|protected):\s*$)|\b(?:constexpr|nullptr|noexcept)\b|\w::\w|^[^\S\n]*#\s*include\s*<\w+>",
    re.MULTILINE,
)
_OBJECTIVE_C_HEADER = re.compile(r"^[^\S\n]*@(?:interface|protocol|class)\b", re.MULTILINE)


def find_language(name: str) -> Language | None:
    """Return the language for a name of `detect_language`."""
    return _map_names().get(name)


def find_language_by_ending(ending: str) -> Language | None:
    """Return the likeliest language of a file ending, which is lower-case and has no dot."""
    return _map_endings().get(ending)


def detect_language(path: str, text: str) -> str:
    """Return the language of a file as a lower-case name, `text` by default."""
    name = path.rpartition("/")[2].lower()
    stem, dot, ending = name.rpartition(".")
    if name in _map_file_names():
        return _map_file_names()[name]
    if dot and ending == "h":
        if _OBJECTIVE_C_HEADER.search(text):
            return "objective-c"
        return "cpp" if _CPP_HEADER.search(text) else "c"
    for each in (".".join(name.split(".")[-2:]), ending) if dot else ():
        if each in _map_endings():
            return _map_endings()[each].name
    # Dockerfile.dev, Makefile.am: the well-known name comes first.
    return _map_file_names().get(stem.partition(".")[0]) or _detect_interpreter(text) or "text"


def is_well_known(name: str) -> bool:
    """Whether a file of that name has a known language regardless of its ending: Dockerfile.dev, Makefile.am."""
    lower = name.lower()
    return lower in _map_file_names() or lower.rpartition(".")[0].partition(".")[0] in _map_file_names()


@cache
def _map_names() -> dict[str, Language]:
    return {language.name: language for language in LANGUAGES}


@cache
def _map_file_names() -> dict[str, str]:
    return {name: language.name for language in LANGUAGES for name in language.file_names}


@cache
def _map_endings() -> dict[str, Language]:
    """Map each ending to its language; of several, the first of the table."""
    shared = {ending: language for language in reversed(LANGUAGES) for ending in language.shared_endings}
    return shared | {ending: language for language in LANGUAGES for ending in language.endings}


def _detect_interpreter(text: str) -> str | None:
    if not text.startswith("#!"):
        return None
    interpreter = _SHEBANG.match(text[:200].partition("\n")[0])
    if interpreter is None:
        return None
    return next((language.name for language in LANGUAGES if interpreter[1].lower() in language.interpreters), None)
