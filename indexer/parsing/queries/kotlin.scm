; The query for Kotlin.

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
[(annotation (constructor_invocation (user_type) @annotation)) (annotation (user_type) @annotation)]
