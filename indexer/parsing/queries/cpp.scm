; The query for C++.
; inherits: c_family

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
