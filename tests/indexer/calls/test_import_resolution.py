"""Imports resolve to the files that they can mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.calls.import_resolution import ImportResolver, is_package_manifest

PATHS = (
    *("src/shop/__init__.py", "src/shop/cart.py", "src/shop/cart/deep.py", "tests/cart.py", "setup.py"),
    *("web/index.ts", "web/util.ts", "web/util/index.ts", "packages/ui/src/index.ts", "packages/ui/src/button.tsx"),
    *("crates/core/src/lib.rs", "crates/core/src/wheel/mod.rs", "crates/core/src/wheel/level.rs"),
    *("store/store.go", "store/open.go", "main.go", "lib/shop/till.rb", "Source/com/shop/Cart.java"),
)
MANIFESTS = {
    "go.mod": "// ours\nmodule example.org/shop\n",
    "packages/ui/package.json": '{\n  "version": "1",\n  "name": "@shop/ui"\n}\n',
    "crates/core/Cargo.toml": '[package]\nname = "shop-core"\n',
}
MODULES = ImportResolver(PATHS, MANIFESTS)
PIECES = st.sampled_from(
    ". .. / :: \\ * @ \0 ß crate super self src shop cart web index a py .py .ts .rs .go store wheel shop_core "
    "@shop/ui example.org/shop".split()
)
NAMES = st.one_of(st.text(max_size=40), st.lists(PIECES, max_size=12).map("".join))


@pytest.mark.parametrize(
    ("importer", "module", "expected"),
    [
        ("tests/a.py", "shop.cart", {"src/shop/cart.py"}),
        ("tests/a.py", "cart", {"tests/cart.py"}),
        ("src/shop/cart.py", ".", {"src/shop/__init__.py"}),
        ("src/shop/cart/deep.py", "..cart", {"src/shop/cart.py"}),
        ("src/shop/a.py", "os.path", set()),
        ("web/app.ts", "./util", {"web/util.ts", "web/util/index.ts"}),
        ("web/app.ts", "./util.js", {"web/util.ts", "web/util/index.ts"}),
        ("web/app.ts", ".", {"web/index.ts"}),
        ("web/app.ts", "@shop/ui", {"packages/ui/src/index.ts"}),
        ("web/app.ts", "@shop/ui/button", {"packages/ui/src/button.tsx"}),
        ("web/app.ts", "../../../../web", {"web/index.ts"}),
        ("crates/core/src/wheel/level.rs", "super", {"crates/core/src/wheel/mod.rs"}),
        ("crates/core/src/lib.rs", "crate::wheel::level::Level", {"crates/core/src/wheel/level.rs"}),
        ("crates/core/src/wheel/mod.rs", "self::level", {"crates/core/src/wheel/level.rs"}),
        ("crates/core/tests/a.rs", "shop_core::wheel", {"crates/core/src/wheel/mod.rs"}),
        ("main.go", "example.org/shop/store", {"store/store.go", "store/open.go"}),
        ("main.go", "example.org/shop", {"main.go", "setup.py"}),
        ("main.go", "example.org/shopping/store", set()),
        ("lib/a.rb", "shop/till", {"lib/shop/till.rb"}),
        ("a/B.java", "com.shop.Cart", {"Source/com/shop/Cart.java"}),
    ],
)
def test_an_import_means_the_files_of_its_module(importer: str, module: str, expected: set[str]) -> None:
    assert MODULES.find(module, importer).files == expected


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("lodash", set()),
        ("lodash/pick", set()),
        ("@acme/ui/button", set()),
        ("path", set()),
        ("node:fs/promises", set()),
        ("shared/format", {"web/src/shared/format.ts"}),
        ("@/shared/format", {"web/src/shared/format.ts"}),
        ("based", {"web/base/based.ts"}),
        ("./lodash", {"web/src/lodash.ts"}),
    ],
)
def test_a_script_imports_packages_without_dots(module: str, expected: set[str]) -> None:
    paths = (
        *("web/src/lodash.ts", "web/src/path.ts", "web/src/lodash/pick.ts", "web/src/shared/format.ts"),
        *("web/base/based.ts", "web/src/ui/button.ts", "web/fs/promises.ts"),
    )
    manifests = {
        "web/package.json": '{"name": "web", "dependencies": {"lodash": "1"}, "devDependencies": {"@acme/ui": "2"}}',
        "web/tsconfig.json": '{"compilerOptions": {"baseUrl": "base"}} // with a comment',
        "broken/package.json": '{"dependencies": [',
    }
    assert ImportResolver(paths, manifests).find(module, "web/src/app.ts").files == expected


def test_a_package_that_cannot_be_placed_hands_on_from_its_folder() -> None:
    modules = ImportResolver(["ui/deep/button.ts"], {"ui/package.json": '{\n"name": "ui"}'})

    found = modules.find("ui", "app.ts")

    assert (found.files, found.folders, found.is_outside) == (frozenset(), ("ui/",), False)


def test_manifests_are_known_by_their_names() -> None:
    assert is_package_manifest("a/b/go.mod")
    assert not is_package_manifest("go.mod/a.go")


@given(NAMES, NAMES)
def test_any_import_of_any_file_means_files_that_there_are(module: str, importer: str) -> None:
    found = MODULES.find(module, importer)

    assert found.files <= set(PATHS)
    assert found == MODULES.find(module, importer)


@given(st.lists(NAMES, max_size=8), st.dictionaries(st.sampled_from(list(MANIFESTS)), NAMES), NAMES, NAMES)
def test_any_repository_can_be_asked(paths: list[str], manifests: dict[str, str], module: str, importer: str) -> None:
    assert ImportResolver(paths, manifests).find(module, importer).files <= set(paths)


@pytest.mark.parametrize("unit", ["a/", "../", ".", "::", "\n", "module "])
def test_endless_imports_and_manifests_take_no_time(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    modules = ImportResolver(PATHS, dict.fromkeys(MANIFESTS, text))

    for importer in ("web/app.ts", "src/shop/a.py", "crates/core/src/lib.rs", "main.go", text):
        for start in ("", "./", "crate::"):
            assert modules.find(f"{start}{text}", importer).files <= set(PATHS)
