; The query for Python.

(function_definition name: (_) @name body: (_) @body) @function
(decorated_definition definition: (function_definition name: (_) @name)) @function
(class_definition name: (_) @name body: (_) @body) @class
(decorated_definition definition: (class_definition name: (_) @name)) @class
(type_alias_statement left: (type . [(identifier) @name (generic_type (identifier) @name)])) @type
(module (expression_statement (assignment left: (identifier) @name)) @constant)
(call function: [(identifier) (attribute)] @call)
(class_definition superclasses: (argument_list [
  (identifier) @inherit (attribute) @inherit (subscript value: [(identifier) (attribute)] @inherit)]))
(import_statement name: (dotted_name) @from)
(import_statement name: (aliased_import name: (_) @from alias: (_) @alias))
(import_from_statement module_name: (_) @from name: (dotted_name) @import)
(import_from_statement module_name: (_) @from name: (aliased_import name: (_) @import alias: (_) @alias))
(import_from_statement module_name: (_) @from (wildcard_import) @import)
(future_import_statement "__future__" @from name: (dotted_name) @import)
(decorator [(identifier) (attribute)] @annotation)
