"""Finds the code in files with more than one language: components, templates, pages, documents and notebooks.

Everything else becomes blank, so that every line keeps its number and its length. All scans are
bounded: they give up on a delimiter not closed within some thousand characters, and on a page with
many of these.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate, islice
from string import ascii_lowercase, ascii_uppercase

from indexer.parsing.grammars import GRAMMARS
from indexer.parsing.telling_paths import COMPONENT_ENDINGS
from indexer.text.languages import CONTAINERS, detect_language, find_language, find_language_by_ending
from indexer.text.notebooks import read_cells
from indexer.types import Import, Reference, Symbol, SymbolKind

Range = tuple[int, int]

_MAX_PARTS = 200  # of a file that are parsed on their own
_MAX_RANGES = 5_000
_MAX_TAG = 2_000  # characters
_MAX_EXPRESSION = 5_000
_MAX_UNCLOSED = 100

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)  # unlike `lower`, keeps every length
_HIDDEN = re.compile(r"<!--|<(script|style)(?=[\s>/])")  # of a page in lower case
_LANG = re.compile(r"\b(?:lang|type)\s*=\s*[\"']?([\w/+.-]+)")
_SCRIPTS = {"module": "javascript", "text/javascript": "javascript", "application/javascript": "javascript"}
_SCRIPTS |= {"js": "javascript", "jsx": "javascript", "ts": "typescript", "tsx": "tsx", "text/typescript": "typescript"}
_TAG = re.compile(r"<([A-Z]\w*(?:\.[A-Z]\w*)*|[a-z][a-z0-9]*(?:-[a-z0-9]+)+)(?=[\s/>])")
_ATTRIBUTE = re.compile(
    r"(?<=\s)(?:(@[\w.:-]+|v-on:[\w.:-]+|\([\w.-]+\)|on\w+|x-on:[\w.:-]+)|:[\w.:-]+|v-[\w.:-]+|\[[\w.-]+\]|\*\w+|x-[\w.:-]+)"
    r"\s*=\s*(?:\"([^\"]{0,2000})\"|'([^']{0,2000})')"
)
_HANDLER = re.compile(r"\s*([\w$]+(?:\.[\w$]+)*)\s*")
_CALL = re.compile(r"(?<![\w$.])([\w$.]+)\s*\(")
_FILTER = re.compile(r"\|\s*([A-Za-z_]\w*)")
_STRING = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'")
_STATEMENT = re.compile(r"\s*(?:-\s*)?(end)?(macro|block|extends|include|import|from|embed)\b\s*([\"']?)([\w./:-]*)")
_NAMED = re.compile(r"\bimport\s+(\w+(?:\s*,\s*\w+)*)")
_DIRECTIVE = re.compile(r"@(\w+)\s*(?=\()")
_BLADE_FILES = {"include", "includeIf", "extends", "component", "livewire", "each"}
_RAZOR_LINE = re.compile(r"^[ \t]*@(using|inject|model|inherits|implements)[ \t]+([\w.]+)", re.MULTILINE)
_RAZOR_BLOCK = re.compile(r"@(?:code|functions)?\s{0,9}(?=\{)")
_RAZOR_CALL = re.compile(
    r"@(?:await\s{1,9})?([A-Za-z_][\w.]*)\s{0,9}[(<]|@on\w+\s?=\s?\"@?([A-Za-z_][\w.]*)\"|@bind[\w:-]*=\"([\w.]+)\""
)
_FENCE = re.compile(r"^[ \t>]{0,12}(`{3,}|~{3,})[ \t]*\{?[. \t]*([\w+#.-]*)", re.MULTILINE)
_KEYWORDS = frozenset(
    "if elseif else for foreach while switch with case lock using catch return new in and or not is".split()
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """Code in one language, from a row on; `is_row` if all of it is on that row.

    With `only_uses` its definitions do not count: expressions of a template, and examples in a
    document.
    """

    language: str
    text: str
    first_row: int = 0
    is_row: bool = False
    only_uses: bool = False

    def find_line(self, line: int) -> int:
        """Return the line of the file that a line of the code is on."""
        return self.first_row + (1 if self.is_row else line)


@dataclass(kw_only=True, slots=True)
class Contents:
    """The code in a file, and the contents of its markup: tags of components, macros, includes."""

    parts: list[Part] = field(default_factory=list)
    symbols: list[Symbol] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)


class _Page:
    """A text from which code is extracted."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.contents = Contents()
        self._starts = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))

    def line(self, place: int) -> int:
        """Return the line of a position, from 1."""
        return bisect_right(self._starts, place)

    def keep(self, ranges: Iterable[Range]) -> str:
        """Blank everything else, with a semicolon after each range so that neighbours do not join."""
        pieces, at = [], 0
        for start, end in sorted(islice(ranges, _MAX_RANGES)):
            if start < at:
                continue
            pieces += [_blank(self.text[at:start]), self.text[start:end]]
            at = end
            if self.text[at : at + 1] not in {"", "\n"} and not pieces[-1].rstrip(" \t").endswith("\n"):
                pieces.append(";")
                at += 1
        return "".join([*pieces, _blank(self.text[at:])])

    def add_code(self, language: str, ranges: Iterable[Range], *, only_uses: bool = False) -> None:
        """Add ranges to parse together, in one language."""
        kept = self.keep(ranges)
        if kept and not kept.isspace():
            opening = "<?php " if language == "php" else ""
            self.contents.parts.append(Part(language=language, text=opening + kept, only_uses=only_uses))

    def add_use(self, name: str, place: int) -> None:
        """Add a use of a name by the markup."""
        qualifier, _, last = name.rpartition(".")
        if last not in _KEYWORDS and last.isidentifier():
            use = Reference(name=last, qualifier=qualifier, kind="call", line=self.line(place), scope="")
            self.contents.references.append(use)

    def add_import(self, module: str, place: int, name: str = "") -> None:
        """Add another file, or one of its names, that the markup refers to."""
        self.contents.imports.append(Import(module=module, name=name, alias=name, line=self.line(place)))

    def add_symbol(self, name: str, kind: SymbolKind, place: Range, signature: str) -> None:
        """Add a definition by the markup."""
        first, last = map(self.line, place)
        self.contents.symbols.append(
            Symbol(
                name=name, qualified_name=name, kind=kind, signature=signature, doc="", start_line=first, end_line=last
            )
        )

    def add_calls(self, start: int, end: int) -> None:
        """Add the calls and filters of an expression in a language without a grammar."""
        code = _STRING.sub(lambda match: " " * len(match[0]), self.text[start:end])
        for pattern in (_CALL, _FILTER):
            for match in pattern.finditer(code):
                self.add_use(match[1], start + match.start(1))


def find_contents(language: str, path: str, text: str) -> Contents:
    """Find the code in a container file; a component is named by its file."""
    page = _Page(text)
    _READERS[language](page)
    del page.contents.parts[_MAX_PARTS:]
    name = path.rpartition("/")[2].partition(".")[0]
    if path.lower().endswith(COMPONENT_ENDINGS) and name[:1].isupper():
        page.add_symbol(name, "class", (0, len(text)), f"component {name}")
    return page.contents


def is_container(language: str) -> bool:
    """Whether files of a language hold code in others."""
    return language in CONTAINERS


def _blank(text: str) -> str:
    return "\n".join(" " * len(line) for line in text.split("\n"))


def _read_component(page: _Page) -> None:
    """Read a Vue component, or a page for the browser, Angular's included: scripts, directives, expressions, tags."""
    markup, typed = _read_scripts(page)
    language = "typescript" if typed else "javascript"
    expressions = [*_find_between(markup, "{{", "}}")]
    for match in _ATTRIBUTE.finditer(markup):
        group = 2 if match[2] is not None else 3
        if match[1] and (handler := _HANDLER.fullmatch(match[group])):
            page.add_use(handler[1], match.start(group))
        else:
            expressions.append(match.span(group))
    if "{%" in markup:  # a page that a server fills in
        _read_statements(page, markup)
    page.add_code(language, expressions, only_uses=True)


def _read_braces(page: _Page) -> None:
    """Read a Svelte component: scripts, and expressions in braces."""
    markup, _ = _read_scripts(page)
    _add_braces(page, markup)


def _read_astro(page: _Page) -> None:
    fence = re.match(r"\s*---[ \t]*\n", page.text)
    end = page.text.find("\n---", fence.end() - 1) if fence else -1
    if fence and end >= 0:
        page.add_code("typescript", [(fence.end(), end)])
    markup, _ = _read_scripts(page)
    start = end + 4 if fence and end >= 0 else 0
    _add_braces(page, _blank(markup[:start]) + markup[start:])


def _add_braces(page: _Page, markup: str) -> None:
    expressions = []
    for start, end in _find_braces(markup):
        sign = re.match(r"[#:@/]\s*\w*", markup[start:end])
        begin = start + sign.end() if sign else start
        handler = _HANDLER.fullmatch(markup[begin:end])
        if handler and re.search(r"\bon:?\w+=$", markup[max(0, start - 40) : start - 1]):
            page.add_use(handler[1], begin)
        elif not (sign and sign[0].startswith("/")):
            expressions.append((begin, end))
    page.add_code("tsx", expressions, only_uses=True)


def _read_scripts(page: _Page) -> tuple[str, bool]:
    """Add the scripts and component tags of a page; return the rest, and whether a script is TypeScript."""
    found: dict[str, list[Range]] = {}
    hidden: list[Range] = []
    low, at, unclosed = page.text.translate(_LOWER), 0, 0
    while (match := _HIDDEN.search(low, at)) and len(hidden) < _MAX_RANGES and unclosed < _MAX_UNCLOSED:
        if match[1] is None:
            end = low.find("-->", match.end())
            at = end + 3 if end >= 0 else len(low)
            hidden.append((match.start(), at))
            continue
        begin = _find_tag_end(page.text, match.end())
        if begin < 0:
            at = match.end()
            unclosed += 1
            continue
        end = low.find(f"</{match[1]}", begin)
        end = len(low) if end < 0 else end
        at = end
        lang = _LANG.search(low, match.end(), begin)
        language = _SCRIPTS.get(lang[1]) if lang else "javascript"
        if low[begin - 1 : begin] == "/":
            at = begin
        elif match[1] == "script" and language:
            found.setdefault(language, []).append((begin + 1, end))
        hidden.append((match.start(), at))
    for language, ranges in found.items():
        page.add_code(language, ranges)
    markup = _hide(page.text, hidden)
    for tag in _TAG.finditer(markup):
        words = tag[1].removeprefix("x-").split("-")
        page.add_use("".join(word[:1].upper() + word[1:] for word in words), tag.start())
    return markup, bool({"typescript", "tsx"} & {*found})


def _hide(text: str, ranges: Iterable[Range]) -> str:
    pieces, at = [], 0
    for start, end in ranges:
        pieces += [text[at:start], _blank(text[start:end])]
        at = end
    return "".join([*pieces, text[at:]])


def _find_tag_end(text: str, at: int) -> int:
    quote = ""
    for place in range(at, min(len(text), at + _MAX_TAG)):
        sign = text[place]
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign == ">":
            return place
    return -1


def _find_between(text: str, opening: str, closing: str) -> Iterator[Range]:
    """Yield the texts between delimiters."""
    at = 0
    while (start := text.find(opening, at)) >= 0:
        start += len(opening)
        end = text.find(closing, start)
        if end < 0:
            return
        if end - start <= _MAX_EXPRESSION:
            yield start, end
        at = end + len(closing)


def _find_braces(text: str) -> Iterator[Range]:
    """Yield the texts in outermost braces."""
    at = unclosed = 0
    while (start := text.find("{", at)) >= 0 and unclosed < _MAX_UNCLOSED:
        end = _find_closing(text, start, "{}")
        if end >= 0:
            yield start + 1, end
        else:
            unclosed += 1
        at = max(start, end) + 1


def _find_closing(text: str, start: int, pair: str) -> int:
    """Return the position of the sign that closes the one at `start`, or -1."""
    depth = 0
    for place in range(start, min(len(text), start + _MAX_EXPRESSION)):
        depth += (text[place] == pair[0]) - (text[place] == pair[1])
        if depth == 0:
            return place
    return -1


def _read_tags(language: str) -> Callable[[_Page], None]:
    """Make a reader of code between `<%` and `%>`, as in ERB and EJS."""

    def read(page: _Page) -> None:
        _read_scripts(page)
        ranges = []
        for start, end in _find_between(page.text, "<%", "%>"):
            if page.text[start : start + 1] not in {"#", "%"}:
                code = page.text[start:end]
                ranges.append((start + len(code) - len(code.lstrip("=-_")), end - (len(code) - len(code.rstrip("-_")))))
        page.add_code(language, ranges)

    return read


def _read_jinja(page: _Page) -> None:
    markup, _ = _read_scripts(page)
    _read_statements(page, markup)
    for start, end in _find_between(markup, "{{", "}}"):
        page.add_calls(start, end)


def _read_statements(page: _Page, markup: str) -> None:
    """Read the statements of Jinja, Django, Twig or Liquid: macros and blocks, includes, calls."""
    opened: list[tuple[str, str, int]] = []
    for start, end in _find_between(markup, "{%", "%}"):
        code = markup[start:end]
        match = _STATEMENT.match(code)
        if match is None:
            page.add_calls(start, end)
        elif match[1] and opened and opened[-1][0] == match[2]:
            _, name, begin = opened.pop()
            signature = " ".join(markup[begin : begin + _MAX_TAG].partition("%}")[0].split())
            page.add_symbol(name, "function" if match[2] == "macro" else "module", (begin, start), signature)
        elif match[2] in {"macro", "block"} and not match[1]:
            opened.append((match[2], match[4], start))
        elif match[3]:
            names = _NAMED.search(code, match.end()) if match[2] == "from" else None
            for name in names[1].split(",") if names else [""]:
                page.add_import(match[4], start, name.strip())


def _read_blade(page: _Page) -> None:
    """Read a Blade template: its expressions and directives are PHP."""
    markup, _ = _read_scripts(page)
    ranges = [
        *_find_between(markup, "{{", "}}"),
        *_find_between(markup, "{!!", "!!}"),
        *_find_between(markup, "@php", "@endphp"),
    ]
    at = unclosed = 0
    while (match := _DIRECTIVE.search(markup, at)) and unclosed < _MAX_UNCLOSED:
        end = _find_closing(markup, match.end(), "()")
        at = max(match.end(), end)
        name = _STRING.match(markup, match.end() + 1)
        if end < 0:
            unclosed += 1
        elif name and match[1] in _BLADE_FILES:
            page.add_import(name[0].strip("\"'").replace(".", "/"), match.start())
        else:
            ranges.append((match.end() + 1, end))
    page.add_code("php", ranges, only_uses=True)


def _read_razor(page: _Page) -> None:
    """Read a Razor page or component: blocks of C#, and calls in its markup."""
    markup, _ = _read_scripts(page)
    for match in _RAZOR_LINE.finditer(markup):
        page.add_import(match[2], match.start())
    blocks: list[Range] = []
    for match in islice(_RAZOR_BLOCK.finditer(markup), _MAX_PARTS):
        if not blocks or match.start() >= blocks[-1][1]:
            depth = place = 0
            for place in range(match.end(), len(markup)):
                depth += (markup[place] == "{") - (markup[place] == "}")
                if depth == 0:
                    break
            blocks.append((match.end() + 1, place))
    page.add_code("csharp", blocks)
    rest = _hide(markup, blocks)
    for match in _RAZOR_CALL.finditer(rest):
        page.add_use(next(filter(None, match.groups())), match.start())


def _read_markdown(page: _Page) -> None:
    """Read the fenced blocks of a document, each in its language."""
    lines = page.text.split("\n")
    row = 0
    for fence in _FENCE.finditer(page.text):
        first = page.line(fence.start())
        if first <= row or len(page.contents.parts) >= _MAX_PARTS:
            continue
        ends = (place for place in range(first, len(lines)) if _is_closed(fence[1], lines[place]))
        row = next(ends, len(lines)) + 1
        name = fence[2].lower().strip(".")
        language = find_language(name) or find_language_by_ending(name) or find_language(detect_language(name, ""))
        if language is not None and language.name in GRAMMARS:
            text = "\n".join(lines[first : row - 1])
            page.contents.parts.append(Part(language=language.name, text=text, first_row=first, only_uses=True))


def _is_closed(fence: str, line: str) -> bool:
    """Whether a line closes a block: its fence, or a longer one, and nothing else."""
    mark = line.lstrip(" \t>").rstrip()
    return mark.startswith(fence) and not mark.strip(fence[0])


def _read_mdx(page: _Page) -> None:
    """Read a document with components: imports and exports between its paragraphs, tags, and fenced blocks."""
    _read_markdown(page)
    parts = page.contents.parts
    fenced = {part.first_row + row for part in parts for row in range(part.text.count("\n") + 1)}
    lines = page.text.split("\n")
    is_code = False
    for row, line in enumerate(lines):
        is_fenced = row in fenced
        is_code = not is_fenced and bool(line.strip()) and (is_code or line.startswith(("import ", "export ")))
        if not is_code:
            for tag in () if is_fenced else _TAG.finditer(line):
                page.contents.references.append(
                    Reference(name=tag[1].rpartition(".")[2], qualifier="", kind="call", line=row + 1, scope="")
                )
            lines[row] = ""
    parts.insert(0, Part(language="tsx", text="\n".join(lines)))


def _read_notebook(page: _Page) -> None:
    """Read the code cells of a notebook together, in each language, without notebook commands."""
    lines = page.text.split("\n")
    by_language: dict[str, list[str]] = {}
    for cell in read_cells(page.text):
        kept = cell.joined or tuple(lines[cell.first_row : cell.last_row + 1])
        language = find_language(cell.language)
        if language is None or language.name not in GRAMMARS or (kept and kept[0].startswith("%%")):
            continue
        kept = tuple("" if line.lstrip()[:1] in {"%", "!"} else line for line in kept)
        if cell.joined:
            part = Part(language=cell.language, text="\n".join(kept), first_row=cell.first_row, is_row=True)
            page.contents.parts.append(part)
        else:
            by_language.setdefault(cell.language, [""] * len(lines))[cell.first_row : cell.last_row + 1] = kept
    page.contents.parts += [Part(language=name, text="\n".join(kept)) for name, kept in by_language.items()]


_READERS: dict[str, Callable[[_Page], None]] = {
    "vue": _read_component,
    "html": _read_component,
    "svelte": _read_braces,
    "astro": _read_astro,
    "erb": _read_tags("ruby"),
    "ejs": _read_tags("javascript"),
    "jinja": _read_jinja,
    "blade": _read_blade,
    "razor": _read_razor,
    "markdown": _read_markdown,
    "mdx": _read_mdx,
    "notebook": _read_notebook,
}
