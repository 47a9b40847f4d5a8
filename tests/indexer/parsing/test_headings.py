"""Prose: what a piece stands under is part of what it is found by, and each version of a changelog stands alone."""

from __future__ import annotations

from indexer.parsing.file_parser import find_headings, parse_file

PARAGRAPH = "Words that fill a paragraph of some length, one after the other. " * 10 + "\n"
LEVELS = [("Guide", 1), ("Install", 2), ("From source", 3), ("Configure", 2)]


def list_levels(language: str, text: str) -> list[tuple[str, int]]:
    return [(heading.title, heading.level) for heading in find_headings(language, text.split("\n"))]


def test_headings_of_markdown_are_nested_by_their_marks() -> None:
    text = "# Guide\n\nText\n\n## Install\n\n### From source ###\n\n```\n# no heading\n```\n\nConfigure\n---------\n"
    assert list_levels("markdown", text) == LEVELS


def test_headings_of_restructured_text_are_nested_in_the_order_of_their_signs() -> None:
    text = "=====\nGuide\n=====\n\nInstall\n=======\n\nFrom source\n~~~~~~~~~~~\n\nConfigure\n=========\n"
    assert list_levels("rst", text) == LEVELS


def test_a_piece_is_named_by_all_that_it_stands_under() -> None:
    text = "\n".join(
        ("# Guide", PARAGRAPH, "## Install", PARAGRAPH, "### From source", PARAGRAPH, "## Configure", PARAGRAPH)
    )
    scopes = [chunk.scope for chunk in parse_file("guide.md", text).chunks]

    assert scopes == ["Guide", "Guide / Install", "Guide / Install / From source", "Guide / Configure"]


def test_the_rest_of_a_long_section_still_belongs_to_its_heading() -> None:
    chunks = parse_file("guide.md", "# Retries\n\n" + (PARAGRAPH + "\n") * 8).chunks

    assert len(chunks) > 2
    assert {chunk.scope for chunk in chunks} == {"Retries"}


def test_each_version_of_a_changelog_is_a_chunk() -> None:
    text = "# Changelog\n\n## [Unreleased]\n\n- Soon\n\n## 1.2.0\n\n### Fixed\n\n- A leak\n\n## 1.1.9\n\n- The start\n"
    chunks = parse_file("CHANGELOG.md", text).chunks

    assert [chunk.text.split("\n")[0] for chunk in chunks] == ["# Changelog", "## [Unreleased]", "## 1.2.0", "## 1.1.9"]
    assert chunks[2].scope == "Changelog / 1.2.0 / Fixed"


def test_versions_of_a_changelog_without_markup_are_told_apart() -> None:
    text = "News of this project\n\nVersion 2.1\n  - faster\n\n2.0 (2020-01-01)\n  - needs 3.5 or later\n"
    chunks = parse_file("CHANGES.txt", text).chunks

    assert [chunk.text.split("\n")[0] for chunk in chunks] == [
        "News of this project",
        "Version 2.1",
        "2.0 (2020-01-01)",
    ]


def test_numbers_in_other_documents_are_no_versions() -> None:
    text = "Measured\n\n2.0 seconds\n\n3.5 seconds\n"
    assert len(parse_file("notes.txt", text).chunks) == 1


def test_a_comment_that_is_cut_off_its_definition_is_found_by_its_name() -> None:
    comment = "/**\n" + " * Says at length what retrying means.\n" * 30 + " */\n"
    method = "int retryLater(int times) {\n" + "  times = times + 1;\n" * 40 + "  return times;\n}\n"
    chunks = parse_file("a.c", "int other(void) { return 1; }\n\n" + comment + method).chunks

    alone = [chunk for chunk in chunks if chunk.text.startswith("/**") and "retryLater" not in chunk.text]
    assert [chunk.names for chunk in alone] == [("retryLater",)]
