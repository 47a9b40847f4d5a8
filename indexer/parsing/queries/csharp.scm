; The query for C#.

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
(attribute name: (_) @annotation)
(using_directive) @tree
