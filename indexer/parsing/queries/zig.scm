; The query for Zig.

(function_declaration name: (_) @name body: (_)? @body) @function
(variable_declaration . (identifier) @name (struct_declaration "{" @body)) @struct
(variable_declaration . (identifier) @name (union_declaration "{" @body)) @struct
(variable_declaration . (identifier) @name (enum_declaration "{" @body)) @enum
(source_file (variable_declaration . (identifier) @name) @constant)
(call_expression function: [(identifier) (field_expression)] @call)
(variable_declaration . (identifier) @alias (builtin_function (builtin_identifier) @_import
  (arguments . (string) @from)) (#eq? @_import "@import"))
