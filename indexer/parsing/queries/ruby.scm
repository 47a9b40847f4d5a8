; The query for Ruby.

(module name: (_) @name body: (_)? @body) @module
(class name: (_) @name superclass: (_)? body: (_)? @body) @class
(method name: (_) @name body: (_)? @body) @function
(singleton_method name: (_) @name body: (_)? @body) @method
(module body: (body_statement (method name: (_) @name) @method))
(program (assignment left: (constant) @name) @constant)
(module body: (body_statement (assignment left: (constant) @name) @constant))
(class body: (body_statement (assignment left: (constant) @name) @constant))
(call !receiver method: [(identifier) (constant)] @call)
(call receiver: (_) @on method: [(identifier) (constant)] @call)
(superclass (_) @inherit)
(call !receiver method: (identifier) @_mixin arguments: (argument_list [(constant) (scope_resolution)] @inherit)
  (#any-of? @_mixin "include" "extend" "prepend"))
(call !receiver method: (identifier) @_require arguments: (argument_list . (string) @from)
  (#any-of? @_require "require" "require_relative" "load"))
