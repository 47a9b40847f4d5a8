; The query for TypeScript.
; inherits: ecmascript

(abstract_class_declaration name: (_) @name body: (_) @body) @class
(interface_declaration name: (_) @name body: (_) @body) @interface
(type_alias_declaration name: (_) @name) @type
(enum_declaration name: (_) @name body: (_) @body) @enum
(internal_module name: (_) @name body: (_) @body) @module
(module name: (_) @name body: (_) @body) @module
(function_signature name: (_) @name) @function
(abstract_method_signature name: (_) @name) @method
(interface_body (method_signature name: (_) @name) @method)
(public_field_definition name: (_) @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @method
(class_heritage (extends_clause value: [(identifier) (member_expression)] @inherit))
(implements_clause [(type_identifier) @inherit (nested_type_identifier) @inherit (generic_type name: (_) @inherit)])
(extends_type_clause type: [
  (type_identifier) @inherit (nested_type_identifier) @inherit (generic_type name: (_) @inherit)])
(import_statement (import_require_clause (identifier) @alias source: (_) @from))
; `await send<T>()` is a call of what is awaited, as the grammar has it
(call_expression function: (await_expression [(identifier) (member_expression)] @call))
