; What JavaScript and TypeScript share.

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
