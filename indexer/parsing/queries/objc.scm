; inherits: c_family
; Objective-C adds
(class_interface . (identifier) @name !category) @class
(class_interface . (identifier) @name category: (_)) @scope
(class_implementation . (identifier) @name) @class
(protocol_declaration . (identifier) @name) @interface
(method_definition (method_type) . (identifier) @name (compound_statement) @body) @method
(protocol_declaration (method_declaration (method_type) . (identifier) @name) @method)
(class_interface (property_declaration (struct_declaration (struct_declarator [(identifier) @name
  (pointer_declarator declarator: (identifier) @name)]))) @constant)
(message_expression receiver: (_) @on method: (identifier) @call)
(class_interface superclass: (_) @inherit)
(class_interface (parameterized_arguments (type_name (type_identifier) @inherit)))
(protocol_reference_list (identifier) @inherit)
(module_import path: (_) @from)
