; The query for PHP.

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
(attribute . [(name) (qualified_name)] @annotation)
