"""The queries for Python, Ruby, PHP, Lua and Bash."""

from __future__ import annotations

PYTHON = """
(function_definition name: (_) @name body: (_) @body) @function
(decorated_definition definition: (function_definition name: (_) @name)) @function
(class_definition name: (_) @name body: (_) @body) @class
(decorated_definition definition: (class_definition name: (_) @name)) @class
(type_alias_statement left: (type . [(identifier) @name (generic_type (identifier) @name)])) @type
(module (expression_statement (assignment left: (identifier) @name)) @constant)
(call function: [(identifier) (attribute)] @call)
(class_definition superclasses: (argument_list [
  (identifier) @inherit (attribute) @inherit (subscript value: [(identifier) (attribute)] @inherit)]))
(import_statement name: (dotted_name) @from)
(import_statement name: (aliased_import name: (_) @from alias: (_) @alias))
(import_from_statement module_name: (_) @from name: (dotted_name) @import)
(import_from_statement module_name: (_) @from name: (aliased_import name: (_) @import alias: (_) @alias))
(import_from_statement module_name: (_) @from (wildcard_import) @import)
(future_import_statement "__future__" @from name: (dotted_name) @import)
"""

RUBY = """
(module name: (_) @name body: (_)? @body) @module
(class name: (_) @name superclass: (_)? body: (_)? @body) @class
(method name: (_) @name body: (_)? @body) @function
(singleton_method name: (_) @name body: (_)? @body) @method
(module body: (body_statement (method name: (_) @name) @method))
(program (assignment left: (constant) @name) @constant)
(module body: (body_statement (assignment left: (constant) @name) @constant))
(class body: (body_statement (assignment left: (constant) @name) @constant))
(call !receiver method: [(identifier) (constant)] @call)
(call receiver: (_) @on method: [(identifier) (constant)] @call)
(superclass (_) @inherit)
(call !receiver method: (identifier) @_mixin arguments: (argument_list [(constant) (scope_resolution)] @inherit)
  (#any-of? @_mixin "include" "extend" "prepend"))
(call !receiver method: (identifier) @_require arguments: (argument_list . (string) @from)
  (#any-of? @_require "require" "require_relative" "load"))
"""

PHP = """
(class_declaration name: (_) @name body: (_) @body) @class
(interface_declaration name: (_) @name body: (_) @body) @interface
(trait_declaration name: (_) @name body: (_) @body) @trait
(enum_declaration name: (_) @name body: (_) @body) @enum
(namespace_definition name: (_) @name body: (_) @body) @module
(namespace_definition name: (_) @name !body) @package
(function_definition name: (_) @name body: (_) @body) @function
(method_declaration name: (_) @name body: (_)? @body) @method
(program (const_declaration (const_element . (name) @name)) @constant)
(function_call_expression function: [(name) (qualified_name)] @call)
(member_call_expression object: (_) @on name: (name) @call)
(nullsafe_member_call_expression object: (_) @on name: (name) @call)
(scoped_call_expression scope: (_) @on name: (name) @call)
(object_creation_expression . [(name) (qualified_name)] @call)
(base_clause [(name) (qualified_name)] @inherit)
(class_interface_clause [(name) (qualified_name)] @inherit)
(use_declaration [(name) (qualified_name)] @inherit)
(namespace_use_declaration) @tree
"""

LUA = """
(function_declaration name: (_) @name body: (_)? @body) @function
(assignment_statement (variable_list . name: (_) @name .)
  (expression_list . value: (function_definition body: (_)? @body))) @function
(chunk (assignment_statement (variable_list . name: (identifier) @name)) @constant)
(chunk (variable_declaration (assignment_statement (variable_list . name: (identifier) @name))) @constant)
(function_call name: [(identifier) (dot_index_expression) (method_index_expression)] @call)
(assignment_statement (variable_list . name: (identifier) @alias)
  (expression_list . value: (function_call name: (identifier) @_require arguments: (arguments . (string) @from)))
  (#eq? @_require "require"))
(chunk (function_call name: (identifier) @_require arguments: (arguments . (string) @from))
  (#eq? @_require "require"))
"""

BASH = """
(function_definition name: (_) @name body: (_) @body) @function
(program (variable_assignment name: (variable_name) @name) @constant)
(program (declaration_command (variable_assignment name: (variable_name) @name)) @constant)
(command name: (command_name . (word) @call .))
(command name: (command_name) @_source . argument: (_) @from (#any-of? @_source "source" "."))
"""
