"""The queries for Java, Kotlin, Scala, C# and Swift."""

from __future__ import annotations

JAVA = """
(class_declaration name: (_) @name body: (_) @body) @class
(record_declaration name: (_) @name body: (_) @body) @class
(interface_declaration name: (_) @name body: (_) @body) @interface
(annotation_type_declaration name: (_) @name body: (_) @body) @interface
(enum_declaration name: (_) @name body: (_) @body) @enum
(method_declaration name: (_) @name body: (_)? @body) @method
(constructor_declaration name: (_) @name body: (_) @body) @method
(compact_constructor_declaration name: (_) @name body: (_) @body) @method
(method_invocation !object name: (_) @call)
(method_invocation object: (_) @on name: (_) @call)
(object_creation_expression type: [(type_identifier) @call (scoped_type_identifier) @call (generic_type . (_) @call)])
(superclass [(type_identifier) @inherit (scoped_type_identifier) @inherit (generic_type . (_) @inherit)])
(type_list [(type_identifier) @inherit (scoped_type_identifier) @inherit (generic_type . (_) @inherit)])
(import_declaration) @tree
"""

KOTLIN = """
(class_declaration "class" name: (_) @name (class_body)? @body) @class
(class_declaration "interface" name: (_) @name (class_body)? @body) @interface
(class_declaration name: (_) @name (enum_class_body) @body) @enum
(object_declaration name: (_) @name (class_body)? @body) @class
(function_declaration name: (_) @name (function_body)? @body) @function
(type_alias type: (_) @name) @type
(source_file (property_declaration (variable_declaration . (identifier) @name)) @constant)
(call_expression . [(identifier) (navigation_expression)] @call)
(delegation_specifier [(user_type) @inherit (constructor_invocation . (user_type) @inherit)])
(import) @tree
"""

SCALA = """
(class_definition name: (_) @name body: (_)? @body) @class
(object_definition name: (_) @name body: (_)? @body) @class
(trait_definition name: (_) @name body: (_)? @body) @trait
(enum_definition name: (_) @name body: (_) @body) @enum
(function_definition name: (_) @name body: (_) @body) @function
(function_declaration name: (_) @name) @function
(type_definition name: (_) @name) @type
(given_definition name: (_) @name body: (_)? @body) @class
(compilation_unit (val_definition pattern: (identifier) @name) @constant)
(call_expression function: [(identifier) (field_expression)] @call)
(call_expression function: (generic_function function: (_) @call))
(instance_expression . [(type_identifier) @call (generic_type type: (_) @call)])
(extends_clause [(type_identifier) @inherit (stable_type_identifier) @inherit (generic_type type: (_) @inherit)])
(import_declaration) @tree
"""

C_SHARP = """
(class_declaration name: (_) @name body: (_)? @body) @class
(record_declaration name: (_) @name body: (_)? @body) @class
(interface_declaration name: (_) @name body: (_)? @body) @interface
(struct_declaration name: (_) @name body: (_)? @body) @struct
(enum_declaration name: (_) @name body: (_)? @body) @enum
(delegate_declaration name: (_) @name) @type
(namespace_declaration name: (_) @name body: (_) @body) @module
(file_scoped_namespace_declaration name: (_) @name) @package
(method_declaration name: (_) @name body: (_)? @body) @method
(constructor_declaration name: (_) @name body: (_)? @body) @method
(property_declaration name: (_) @name accessors: (_)? @body) @method
(local_function_statement name: (_) @name body: (_)? @body) @function
(invocation_expression function: [(identifier) (member_access_expression) (conditional_access_expression)] @call)
(invocation_expression function: (generic_name . (_) @call))
(object_creation_expression type: [(identifier) @call (qualified_name) @call (generic_name . (_) @call)])
(base_list [(identifier) @inherit (qualified_name) @inherit (generic_name . (_) @inherit)
  (primary_constructor_base_type . (_) @inherit)])
(using_directive) @tree
"""

SWIFT = """
(class_declaration declaration_kind: ["class" "actor"] name: (_) @name body: (_) @body) @class
(class_declaration declaration_kind: "struct" name: (_) @name body: (_) @body) @struct
(class_declaration declaration_kind: "enum" name: (_) @name body: (_) @body) @enum
(class_declaration declaration_kind: "extension" name: (_) @name) @scope
(protocol_declaration name: (_) @name body: (_) @body) @interface
(function_declaration name: (simple_identifier) @name body: (_)? @body) @function
(protocol_function_declaration name: (simple_identifier) @name) @method
(init_declaration "init" @name body: (_)? @body) @method
(deinit_declaration "deinit" @name body: (_)? @body) @method
(typealias_declaration name: (type_identifier) @name) @type
(source_file (property_declaration name: (pattern bound_identifier: (_) @name)) @constant)
(call_expression . [(simple_identifier) (navigation_expression)] @call)
(inheritance_specifier inherits_from: (_) @inherit)
(import_declaration) @tree
"""
