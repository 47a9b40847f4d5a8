; The query for Haskell.

(haskell declarations: (declarations [(function name: (variable) @name match: (_) @body) @function
  (signature name: (variable) @name) @function (bind name: (variable) @name match: (_) @body) @function]))
(local_binds (function name: (variable) @name match: (_) @body) @function)
(class_declarations [(function name: (variable) @name match: (_) @body) (signature name: (variable) @name)] @method)
(instance_declarations [(function name: (variable) @name match: (_) @body) (bind name: (variable) @name)] @method)
(data_type name: (_) @name constructors: (_)? @body) @struct
(newtype name: (_) @name constructor: (_) @body) @struct
(type_synonym name: (_) @name) @type
(class name: (_) @name declarations: (_)? @body) @interface
(instance name: (_) @name) @scope
(apply function: [(variable) (qualified)] @call)
(deriving classes: [(name) @inherit (_ (name) @inherit)])
(import module: (_) @from !alias !names)
(import module: (_) @from alias: (_) @alias)
(import module: (_) @from !alias names: (import_list name: (import_name [(variable) (name)] @import)))
