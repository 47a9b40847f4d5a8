; The query for Java.

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
[(annotation name: (_) @annotation) (marker_annotation name: (_) @annotation)]
