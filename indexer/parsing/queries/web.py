"""The queries for JavaScript and TypeScript."""

from __future__ import annotations

_ECMASCRIPT = """
(function_declaration name: (_) @name body: (_) @body) @function
(generator_function_declaration name: (_) @name body: (_) @body) @function
(lexical_declaration (variable_declarator name: (identifier) @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)])) @function
(variable_declaration (variable_declarator name: (identifier) @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)])) @function
(assignment_expression left: (member_expression object: (_) @owner property: (property_identifier) @name)
  right: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @function
(assignment_expression left: (identifier) @name
  right: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @function
(class_declaration name: (_) @name body: (_) @body) @class
(method_definition name: (_) @name body: (_) @body) @method
(program [(lexical_declaration (variable_declarator name: (identifier) @name))
  (variable_declaration (variable_declarator name: (identifier) @name))] @constant)
(program (export_statement declaration: (lexical_declaration (variable_declarator name: (identifier) @name)) @constant))
(decorator) @prefix
(call_expression function: [(identifier) (member_expression)] @call)
(new_expression constructor: [(identifier) (member_expression)] @call)
(import_statement (import_clause (identifier) @alias) source: (_) @default)
(import_statement (import_clause (namespace_import (identifier) @alias)) source: (_) @from)
(import_statement (import_clause (named_imports
  (import_specifier name: (_) @import alias: (_)? @alias))) source: (_) @from)
(import_statement . source: (_) @from)
(export_statement (export_clause (export_specifier name: (_) @import alias: (_)? @alias)) source: (_) @from)
(export_statement "*" @import source: (_) @from)
(variable_declarator name: (identifier) @alias
  value: (call_expression function: (identifier) @_require arguments: (arguments . (string) @from))
  (#eq? @_require "require"))
(variable_declarator name: (object_pattern [(shorthand_property_identifier_pattern) @import
    (pair_pattern key: (_) @import value: (identifier) @alias)])
  value: (call_expression function: (identifier) @_require arguments: (arguments . (string) @from))
  (#eq? @_require "require"))
(variable_declarator name: (identifier) @alias value: (member_expression
  object: (call_expression function: (identifier) @_require arguments: (arguments . (string) @from))
  property: (property_identifier) @import)
  (#eq? @_require "require"))
(variable_declarator name: (identifier) @alias value: (call_expression
  function: (call_expression function: (identifier) @_require arguments: (arguments . (string) @from)))
  (#eq? @_require "require"))
(expression_statement (call_expression function: (identifier) @_require arguments: (arguments . (string) @from))
  (#eq? @_require "require"))
(call_expression function: (import) arguments: (arguments . (string) @from))
"""

# A component in use; lower-case elements belong to the browser.
_JSX = """
(jsx_opening_element name: [(identifier) (member_expression)] @call (#match? @call "^[A-Z]"))
(jsx_self_closing_element name: [(identifier) (member_expression)] @call (#match? @call "^[A-Z]"))
"""

JAVASCRIPT = f"""{_ECMASCRIPT}{_JSX}
(field_definition property: (_) @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @method
(class_declaration (class_heritage [(identifier) (member_expression)] @inherit))
"""

TYPESCRIPT = f"""{_ECMASCRIPT}
(abstract_class_declaration name: (_) @name body: (_) @body) @class
(interface_declaration name: (_) @name body: (_) @body) @interface
(type_alias_declaration name: (_) @name) @type
(enum_declaration name: (_) @name body: (_) @body) @enum
(internal_module name: (_) @name body: (_) @body) @module
(module name: (_) @name body: (_) @body) @module
(function_signature name: (_) @name) @function
(abstract_method_signature name: (_) @name) @method
(interface_body (method_signature name: (_) @name) @method)
(public_field_definition name: (_) @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @method
(class_heritage (extends_clause value: [(identifier) (member_expression)] @inherit))
(implements_clause [(type_identifier) @inherit (nested_type_identifier) @inherit (generic_type name: (_) @inherit)])
(extends_type_clause type: [
  (type_identifier) @inherit (nested_type_identifier) @inherit (generic_type name: (_) @inherit)])
(import_statement (import_require_clause (identifier) @alias source: (_) @from))
"""

TSX = f"{TYPESCRIPT}{_JSX}"
