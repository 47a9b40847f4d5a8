; The query for Scala.

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
