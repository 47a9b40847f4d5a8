"""The queries for Go, Rust, C, C++ and Zig."""

from __future__ import annotations

GO = """
(function_declaration name: (_) @name body: (_)? @body) @function
(method_declaration receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @owner (generic_type type: (_) @owner) (pointer_type [(type_identifier) @owner
    (generic_type type: (_) @owner)])])) name: (_) @name body: (_)? @body) @method
(type_declaration "type" @keyword
  (type_spec name: (_) @name type: (struct_type (field_declaration_list) @body)) @struct)
(type_declaration "type" @keyword (type_spec name: (_) @name type: (interface_type "{" @body)) @interface)
(type_declaration "type" @keyword [(type_spec name: (_) @name) (type_alias name: (_) @name)] @type)
(interface_type (method_elem name: (_) @name) @method)
(source_file (const_declaration "const" @keyword (const_spec name: (identifier) @name) @constant))
(source_file (var_declaration "var" @keyword (var_spec name: (identifier) @name) @constant))
(source_file (var_declaration (var_spec_list (var_spec name: (identifier) @name) @constant)))
(call_expression function: [(identifier) (selector_expression)] @call)
(call_expression function: (parenthesized_expression [(identifier) (selector_expression)] @call))
(type_conversion_expression type: (generic_type type: (_) @call))
(field_declaration !name type: [(type_identifier) @inherit (qualified_type) @inherit (generic_type type: (_) @inherit)])
(interface_type (type_elem . [(type_identifier) (qualified_type)] @inherit .))
(import_spec !name path: (_) @from)
(import_spec name: (_) @alias path: (_) @from)
"""

RUST = """
(function_item name: (_) @name body: (_) @body) @function
(function_signature_item name: (_) @name) @function
(struct_item name: (_) @name body: (_)? @body) @struct
(union_item name: (_) @name body: (_) @body) @struct
(enum_item name: (_) @name body: (_) @body) @enum
(trait_item name: (_) @name body: (_) @body) @trait
(mod_item name: (_) @name body: (_)? @body) @module
(type_item name: (_) @name) @type
(associated_type name: (_) @name) @type
(const_item name: (_) @name) @constant
(static_item name: (_) @name) @constant
(macro_definition name: (_) @name "{"? @body) @macro
(impl_item type: [(type_identifier) @name (primitive_type) @name (scoped_type_identifier name: (_) @name)
  (generic_type type: [(type_identifier) @name (scoped_type_identifier name: (_) @name)])
  (reference_type type: [(type_identifier) @name (generic_type type: (_) @name)])]) @scope
(attribute_item) @prefix
(call_expression function: [(identifier) (scoped_identifier) (field_expression)] @call)
(call_expression function: (generic_function function: (_) @call))
(macro_invocation macro: (_) @call)
(trait_bounds [(type_identifier) @inherit (scoped_type_identifier) @inherit (generic_type type: (_) @inherit)])
(impl_item trait: [(type_identifier) @inherit (scoped_type_identifier) @inherit (generic_type type: (_) @inherit)])
(use_declaration) @tree
"""

_C_FAMILY = """
(function_definition declarator: (_) @declarator body: (_) @body) @function
(struct_specifier name: (_) @name body: (_) @body) @struct
(union_specifier name: (_) @name body: (_) @body) @struct
(enum_specifier name: (_) @name body: (_) @body) @enum
(type_definition type: (struct_specifier !name body: (_) @body) declarator: (type_identifier) @name) @struct
(type_definition type: (enum_specifier !name body: (_) @body) declarator: (type_identifier) @name) @enum
(type_definition declarator: (_) @declarator) @type
(preproc_def name: (_) @name value: (_)) @macro
(preproc_function_def name: (_) @name value: (_)? @body) @macro
(translation_unit (declaration declarator: (init_declarator declarator: (_) @declarator)) @constant)
(call_expression function: [(identifier) (field_expression)] @call)
(preproc_include path: (_) @from)
"""

C = _C_FAMILY

CPP = f"""{_C_FAMILY}
(template_declaration (function_definition declarator: (_) @declarator body: (_) @body)) @function
(class_specifier name: (_) @name body: (_) @body) @class
(template_declaration (class_specifier name: (_) @name body: (_) @body)) @class
(template_declaration (struct_specifier name: (_) @name body: (_) @body)) @struct
(namespace_definition name: (_) @name body: (_) @body) @module
(alias_declaration name: (_) @name) @type
(template_declaration (alias_declaration name: (_) @name)) @type
(concept_definition name: (_) @name) @type
(template_declaration (concept_definition name: (_) @name)) @type
(declaration_list (declaration declarator: (init_declarator declarator: (_) @declarator)) @constant)
(call_expression function: (qualified_identifier) @call)
(call_expression function: (template_function name: (_) @call))
(new_expression type: (_) @call)
(base_class_clause [(type_identifier) @inherit (qualified_identifier) @inherit (template_type name: (_) @inherit)])
"""

ZIG = """
(function_declaration name: (_) @name body: (_)? @body) @function
(variable_declaration . (identifier) @name (struct_declaration "{" @body)) @struct
(variable_declaration . (identifier) @name (union_declaration "{" @body)) @struct
(variable_declaration . (identifier) @name (enum_declaration "{" @body)) @enum
(source_file (variable_declaration . (identifier) @name) @constant)
(call_expression function: [(identifier) (field_expression)] @call)
(variable_declaration . (identifier) @alias (builtin_function (builtin_identifier) @_import
  (arguments . (string) @from)) (#eq? @_import "@import"))
"""
