; The query for JavaScript.
; inherits: ecmascript, jsx

(field_definition property: (_) @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @method
(class_declaration (class_heritage [(identifier) (member_expression)] @inherit))
