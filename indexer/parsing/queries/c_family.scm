; What C and C++ share.

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
(init_declarator declarator: (array_declarator) value: (initializer_list (initializer_list . (string_literal))) @table)
