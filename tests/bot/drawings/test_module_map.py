"""Maps of modules: who imports whom among the parts of a folder, and what is said if there is no such map."""

from __future__ import annotations

import pytest

from bot.drawings.module_map import map_modules
from bot.errors import NothingToDraw
from bot.pictures.flow import Flow
from indexer import FileImport
from tests.fakes.code import FakeCode

SHOP = {
    "main.py": "from shop.web.pages import page\n",
    "shop/orders.py": "from shop.store.table import rows\nfrom shop.errors import ShopError\n",
    "shop/errors.py": "class ShopError(Exception):\n    pass\n",
    "shop/alone.py": "x = 1\n",
    "shop/store/table.py": "from shop.errors import ShopError\nfrom tools.text import clean\n",
    "shop/store/rows.py": "from shop.store.table import rows\n",
    "shop/web/pages.py": "import shop.orders\nfrom shop.store.table import rows\n",
    "shop/web/forms.py": "from shop.orders import order\nfrom shop.web.pages import page\n",
    "tools/text.py": "def clean():\n    return 1\n",
    "tests/test_orders.py": "from shop.orders import order\n",
    "README.md": "# Shop\n",
}


def rows(flow: Flow) -> list[str]:
    return flow.to_text().split("\n")[1:]


async def test_the_parts_of_a_folder_import_each_other_and_what_is_around_is_folded() -> None:
    flow = await map_modules(FakeCode(SHOP), "shop")

    assert flow.title == "The architecture of shop/ in shop at c0ffeec"
    assert rows(flow) == [
        "- main.py (1 file) imports web/ (1)",
        "- web/ imports orders.py (2), store/ (1)",
        "- orders.py imports store/ (1), errors.py (1)",
        "- store/ imports errors.py (1), tools/ (1 file) (1)",
    ]
    assert flow.legend.endswith("Left out: 1 part without such imports, tests.")
    looks = {box.label: (box.look, box.note) for box in flow.boxes}
    assert looks["web/"] == ("folder", "2 files")
    assert looks["orders.py"] == ("plain", "2 lines")
    assert looks["tools/"] == ("outside", "1 file")


async def test_without_a_folder_the_map_is_of_the_whole_repository() -> None:
    flow = await map_modules(FakeCode(SHOP), "")

    assert flow.title == "The architecture of shop at c0ffeec"
    assert rows(flow) == ["- main.py imports shop/ (1)", "- shop/ imports tools/ (1)"]


async def test_what_lies_beside_the_folder_is_one_box_for_those_that_use_it_and_one_for_those_that_it_uses() -> None:
    flow = await map_modules(FakeCode(SHOP), "shop/store/")

    assert "- the rest of shop/ (2 files) imports table.py (2)" in rows(flow)
    assert "- table.py imports the rest of shop/ (1 file) (1), tools/ (1 file) (1)" in rows(flow)


async def test_boxes_link_to_the_code() -> None:
    flow = await map_modules(FakeCode(SHOP), "shop")

    links = {box.label: box.link.partition("/blob/")[2].partition("/")[2] for box in flow.boxes}
    assert links["orders.py"] == "shop/orders.py#L1-L1"
    assert links["web/"] == "shop/web/forms.py#L1-L1"


async def test_a_repository_in_a_single_folder_is_drawn_from_there() -> None:
    inner = {f"src/{path}": text for path, text in SHOP.items() if path.startswith("shop/")}

    flow = await map_modules(CodeWithImports(inner, [("src/shop/web/pages.py", "src/shop/orders.py")]), "")

    assert flow.title == "The architecture of src/shop/ in shop at c0ffeec"


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("shp", "There is no folder `shp` in `shop`. The nearest: `shop`."),
        ("shop/stroe", "There is no folder `shop/stroe` in `shop`. The nearest: `shop/store`."),
        ("nosuchthing", "There is no folder `nosuchthing` in `shop`. It has `shop`, `tests`, `tools`."),
        ("shop/orders.py", "`shop/orders.py` is a file of `shop`. Name its folder."),
        ("tools", "Nothing to draw of `shop`: no part of the folder `tools` is known to import another one."),
        ("../`x`\n" + "y" * 10_000, "There is no folder `../x yyy"),
        ('"]<script>', "There is no folder `]<script>` in `shop`."),
    ],
)
async def test_what_cannot_be_drawn_is_said(folder: str, said: str) -> None:
    with pytest.raises(NothingToDraw) as refusal:
        await map_modules(FakeCode(SHOP), folder)

    assert str(refusal.value).startswith(said)
    assert len(str(refusal.value)) < 400


async def test_a_folder_is_found_by_the_end_of_its_path_unless_several_end_so() -> None:
    flow = await map_modules(FakeCode(SHOP), "Store")
    assert flow.title == "The architecture of shop/store/ in shop at c0ffeec"

    with pytest.raises(NothingToDraw, match="Several folders of `shop` are called `store`: `a/store`, `b/store`"):
        await map_modules(FakeCode({"a/store/x.py": "", "b/store/y.py": ""}), "store")


async def test_of_many_lines_the_heaviest_are_drawn_and_the_others_counted() -> None:
    many = {f"shop/m{n:02}.py": "import shop.base\n" for n in range(40)} | {"shop/base.py": ""}
    heavy = {f"shop/web/p{n}.py": "import shop.base\nimport tools.text\n" for n in range(3)}

    flow = await map_modules(FakeCode({**many, **heavy, "tools/text.py": ""}), "shop")
    drawn = flow.make_drawable()

    assert len(flow.lines) == 42
    assert len(drawn.lines) == 25
    assert "shop/web/" in {line.source for line in drawn.lines}
    assert len(drawn.boxes) == 26
    assert "Left out: 17 minor arrows, 17 minor parts, tests." in flow.legend
    assert flow.to_mermaid().count("-->") == 25


async def test_imports_for_the_type_checker_alone_do_not_count() -> None:
    python = {
        "shop/a.py": "if TYPE_CHECKING:\n    from shop.b import B\n\n    from shop.c import C\nfrom shop.d import D\n",
        "shop/b.py": "def f():\n    from shop.c import C\n",
        "shop/c.py": "",
        "shop/d.py": "",
    }
    scripts = {"web/a.ts": 'import type { B } from "./b";\n', "web/b.ts": 'import { A } from "./a";\n'}
    imports: list[tuple[str, ...]] = [("web/a.ts", "web/b.ts"), ("web/b.ts", "web/a.ts")]

    assert rows(await map_modules(FakeCode(python), "shop")) == ["- a.py imports d.py (1)", "- b.py imports c.py (1)"]
    assert rows(await map_modules(CodeWithImports(scripts, imports), "web")) == ["- b.ts imports a.ts (1)"]


async def test_what_other_lines_imply_is_listed_and_not_drawn_where_there_is_much() -> None:
    chain = {f"shop/m{n}.py": "".join(f"import shop.m{lower}\n" for lower in range(n)) for n in range(8)}

    flow = await map_modules(FakeCode(chain), "shop")

    assert len(flow.lines) == 28
    assert [(line.source[-4], line.target[-4]) for line in flow.make_drawable().lines] == [
        (str(n), str(n - 1)) for n in range(7, 0, -1)
    ]
    assert "21 minor arrows" in flow.legend
    assert flow.to_mermaid().count("-->") == 7


async def test_circles_are_drawn_whole() -> None:
    circle = {f"shop/m{n}.py": f"import shop.m{(n + 1) % 5}\n" for n in range(5)}

    flow = await map_modules(FakeCode(circle), "shop")

    assert len(flow.make_drawable().lines) == 5


class CodeWithImports(FakeCode):
    """Code that imports what is said."""

    def __init__(self, files: dict[str, str], imports: list[tuple[str, ...]]) -> None:
        super().__init__(files)
        self._imports = imports

    async def list_file_imports(self) -> list[FileImport]:
        return [FileImport(path=path, line=1, targets=tuple(targets)) for path, *targets in self._imports]


async def test_files_that_are_imported_together_are_one_part() -> None:
    files = dict.fromkeys(["app/a.go", "app/b.go", "app/sub/c.go", "lib/q.c", "lib/q.h", "lib/main.c"], "")

    package = await map_modules(CodeWithImports(files, [("app/sub/c.go", "app/a.go", "app/b.go")]), "app")
    header = await map_modules(CodeWithImports(files, [("lib/main.c", "lib/q.c", "lib/q.h")]), "lib")

    assert rows(package) == ["- sub/ imports *.go (1)"]
    assert rows(header) == ["- main.c imports q.* (1)"]


async def test_an_import_that_may_mean_several_parts_is_only_possible() -> None:
    files = dict.fromkeys(["x/a.py", "x/one/u.py", "x/two/u.py"], "")

    flow = await map_modules(CodeWithImports(files, [("x/a.py", "x/one/u.py", "x/two/u.py")]), "x")

    assert rows(flow) == ["- a.py imports possibly one/ (1), possibly two/ (1)"]


async def test_imports_of_files_that_are_not_indexed_are_passed_over() -> None:
    files = dict.fromkeys(["x/a.py", "x/b.py"], "")

    flow = await map_modules(CodeWithImports(files, [("x/a.py", "x/gone.py"), ("x/a.py", "x/b.py")]), "x")

    assert rows(flow) == ["- a.py imports b.py (1)"]
