"""What to look for in a syntax tree: one tree-sitter query per language, as data.

A pattern for a definition captures the whole of it under its kind (`@function`, `@class`, ...), its `@name`, and the
`@body` that its signature ends before. `@declarator` stands for a C declarator with the name somewhere inside, `@owner`
for a type that is named outside of its braces (a Go receiver). `@scope` qualifies the names in it without being a
definition (a Rust impl), `@package` does so up to the end of the file. `@prefix` is an attribute above a definition,
`@doc` its documentation where that is no comment. `@keyword` opens a declaration that may hold several definitions.

A use of a name is a `@call`, with its receiver as `@on` where they are not one node, or an `@inherit`; nothing inside
`@silent` is one. An import is `@from`, `@import` and `@alias`, `@default` where the module's default
is taken, or a whole statement as `@tree`.
"""
