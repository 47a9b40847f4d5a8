; The query for Rust.

(function_item name: (_) @name body: (_) @body) @function
(function_signature_item name: (_) @name) @function
(struct_item name: (_) @name body: (_)? @body) @struct
(union_item name: (_) @name body: (_) @body) @struct
(enum_item name: (_) @name body: (_) @body) @enum
(trait_item name: (_) @name body: (_) @body) @trait
(mod_item name: (_) @name body: (_)? @body) @module
(type_item name: (_) @name) @type
(associated_type name: (_) @name) @type
(const_item name: (_) @name) @constant
(static_item name: (_) @name) @constant
(macro_definition name: (_) @name "{"? @body) @macro
(impl_item type: [(type_identifier) @name (primitive_type) @name (scoped_type_identifier name: (_) @name)
  (generic_type type: [(type_identifier) @name (scoped_type_identifier name: (_) @name)])
  (reference_type type: [(type_identifier) @name (generic_type type: (_) @name)])]) @scope
(attribute_item) @prefix
(call_expression function: [(identifier) (scoped_identifier) (field_expression)] @call)
(call_expression function: (generic_function function: (_) @call))
(macro_invocation macro: (_) @call)
(trait_bounds [(type_identifier) @inherit (scoped_type_identifier) @inherit (generic_type type: (_) @inherit)])
(impl_item trait: [(type_identifier) @inherit (scoped_type_identifier) @inherit (generic_type type: (_) @inherit)])
(use_declaration) @tree
(attribute_item (attribute . (_) @annotation arguments: (_)))
