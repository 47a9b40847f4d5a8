"""Components, templates, pages and documents: their code is found at its own lines, and their markup uses names."""

from __future__ import annotations

import pytest

from indexer.parsing.file_parser import parse_file
from indexer.text.languages import CONTAINERS

# Of each kind: the path, the text, its definitions with their lines, the names that it uses with theirs, its imports.
VUE = """\
<template>
  <MyPart v-if="isOpen()" @click="toggle" :size="wide(2)">{{ format(title) }}</MyPart>
  <my-icon @done.once="go(1)"/>
</template>
<!-- <script>function hidden() { none() }</script> -->
<script setup lang="ts">
import { send } from "./toast"
const x = 1
function toggle(): void {
  send("größe")
}
</script>
<style>.a { color: red }</style>
"""
SVELTE = """\
<script lang="ts">
  import Part from './Part.svelte'
  function go() { run() }
</script>
{#if ready()}
  <Part on:click={go} size={wide({a: 1})} />
{/if}
"""
ASTRO = """\
---
import Layout from '../Layout.astro'
const items = load()
---
<Layout>{items.map(item => show(item))}</Layout>
<script>start()</script>
"""
HTML = """\
<body onload="start()">
<app-cart (click)="addItem($event)" [total]="sum(a)"></app-cart>
<script src="x.js"></script><script type="application/json">{"a": f()}</script>
<script type="module">
export class Page {
  load() { send() }
}
</script>
"""
ERB = """\
<h1><%= title_of(@user) %></h1>
<% if @user.admin? -%>
  <%# never(1) %>
  <%= render "menu" %>
<% end %>
"""
EJS = "<% items.forEach(function(i) { %>\n<li><%- format(i) %></li>\n<% }) %>\n"
JINJA = """\
{% extends "base.html" %}
{% from "forms.html" import field, label %}
{% macro price(x) -%}
  {{ money(x)|upper }}
{%- endmacro %}
{% block body %}{{ user.full_name("a(b") }}{% if is_admin(u) %}{% endif %}{% endblock %}
"""
BLADE = """\
@extends('layouts.app')
<x-alert-box type="e"/>
@if(isAdmin($user))
  {{ price($item->total()) }} {!! Str::upper($x) !!}
@endif
@php
  $y = compute();
@endphp
"""
RAZOR = """\
@using Shop.Core
<CartView @onclick="AddItem"/>
<p>@Format(total)</p>
@code {
  void AddItem() {
    Cart.Add(1);
  }
}
"""
PHP = "<ul>\n<?php foreach ($items as $i): ?>\n<li><?= render_item($i) ?></li>\n<?php endforeach ?>\n</ul>\n"
MDX = """\
import { Chart } from './chart'

# Title

<Chart data={1} />

export function f() {
  return g()
}
"""
MARKDOWN = """\
# Use

```python
from shop import send
def example():
    send(1)
```

- so:

  ~~~ {.js}
  go()
  ~~~

````md
```python
hidden()
```
````
"""

KINDS = [
    ("Card.vue", VUE, ["Card:1-14", "x:8-8", "toggle:9-11"],
     "MyPart:2 isOpen:2 toggle:2 wide:2 format:2 MyIcon:3 go:3 send:10", ["./toast:7"]),
    ("a.svelte", SVELTE, ["go:3-3"], "run:3 ready:5 Part:6 go:6 wide:6", ["./Part.svelte:2"]),
    ("a.astro", ASTRO, ["items:3-3"], "load:3 Layout:5 map:5 show:5 start:6", ["../Layout.astro:2"]),
    ("a.html", HTML, ["Page:5-7", "Page.load:6-6"], "start:1 AppCart:2 addItem:2 sum:2 send:6", []),
    ("a.html.erb", ERB, [], "title_of:1 admin?:2 render:4", []),
    ("a.ejs", EJS, [], "forEach:1 format:2", []),
    ("a.html.j2", JINJA, ["price:3-5", "body:6-6"], "money:4 upper:4 full_name:6 is_admin:6",
     ["base.html:1", "forms.html:2", "forms.html:2"]),
    ("v/a.blade.php", BLADE, [], "AlertBox:2 isAdmin:3 price:4 total:4 upper:4 compute:7", ["layouts/app:1"]),
    ("a.razor", RAZOR, ["AddItem:5-7"], "CartView:2 AddItem:2 Format:3 Add:6", ["Shop.Core:1"]),
    ("a.phtml", PHP, [], "render_item:3", []),
    ("a.mdx", MDX, ["f:7-9"], "Chart:5 g:8", ["./chart:1"]),
    ("a.md", MARKDOWN, [], "send:6 go:12", []),
]  # fmt: skip


def test_every_container_has_a_source_here() -> None:
    kinds = {parse_file(path, text).language for path, text, *_ in KINDS}

    assert kinds == {*CONTAINERS} - {"notebook"} | {"php"}


@pytest.mark.parametrize(("path", "text", "symbols", "uses", "imports"), KINDS, ids=[kind[0] for kind in KINDS])
def test_code_within_other_text_is_found_at_its_own_lines(
    path: str, text: str, symbols: list[str], uses: str, imports: list[str]
) -> None:
    parsed = parse_file(path, text)

    assert [f"{one.qualified_name}:{one.start_line}-{one.end_line}" for one in parsed.symbols] == symbols
    assert {f"{one.name}:{one.line}" for one in parsed.references if one.kind == "call"} == set(uses.split())
    assert [f"{one.module}:{one.line}" for one in parsed.imports] == imports
    lines = text.split("\n")
    assert all(one.text == "\n".join(lines[one.start_line - 1 : one.end_line]) for one in parsed.chunks)


def test_letters_that_grow_in_lower_case_move_no_code() -> None:
    parsed = parse_file("a.html", "<p>" + "\u0130" * 9 + "</p>\n<SCRIPT TYPE='text/JavaScript'>start(1)</Script>\n")

    assert [(one.name, one.line) for one in parsed.references] == [("start", 2)]


def test_a_bare_fence_takes_no_language_from_its_code() -> None:
    assert parse_file("a.md", "```\npython\nsend(1)\n```\n").references == ()


@pytest.mark.parametrize(
    ("path", "unclosed", "call"),
    [("a.vue", "<script ", "<script>go()</script>"), ("a.blade.php", "@if(", "@if(go())")],
)
def test_what_is_often_not_closed_is_given_up_on(path: str, unclosed: str, call: str) -> None:
    """So that the work on a page is bounded; a few are passed over."""
    few, many = (parse_file(path, unclosed * count + " \n" * 3_000 + call).references for count in (3, 200))

    assert [one.name for one in few] == ["go"]
    assert [one.name for one in many] == []
