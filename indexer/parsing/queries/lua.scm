; The query for Lua.

(function_declaration name: (_) @name body: (_)? @body) @function
(assignment_statement (variable_list . name: (_) @name .)
  (expression_list . value: (function_definition body: (_)? @body))) @function
(chunk (assignment_statement (variable_list . name: (identifier) @name)) @constant)
(chunk (variable_declaration (assignment_statement (variable_list . name: (identifier) @name))) @constant)
(function_call name: [(identifier) (dot_index_expression) (method_index_expression)] @call)
(assignment_statement (variable_list . name: (identifier) @alias)
  (expression_list . value: (function_call name: (identifier) @_require arguments: (arguments . (string) @from)))
  (#eq? @_require "require"))
(chunk (function_call name: (identifier) @_require arguments: (arguments . (string) @from))
  (#eq? @_require "require"))
