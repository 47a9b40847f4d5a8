; The query for Go.

(function_declaration name: (_) @name body: (_)? @body) @function
(method_declaration receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @owner (generic_type type: (_) @owner) (pointer_type [(type_identifier) @owner
    (generic_type type: (_) @owner)])])) name: (_) @name body: (_)? @body) @method
(type_declaration "type" @keyword
  (type_spec name: (_) @name type: (struct_type (field_declaration_list) @body)) @struct)
(type_declaration "type" @keyword (type_spec name: (_) @name type: (interface_type "{" @body)) @interface)
(type_declaration "type" @keyword [(type_spec name: (_) @name) (type_alias name: (_) @name)] @type)
(interface_type (method_elem name: (_) @name) @method)
(source_file (const_declaration "const" @keyword (const_spec name: (identifier) @name) @constant))
(source_file (var_declaration "var" @keyword (var_spec name: (identifier) @name) @constant))
(source_file (var_declaration (var_spec_list (var_spec name: (identifier) @name) @constant)))
(call_expression function: [(identifier) (selector_expression)] @call)
(call_expression function: (parenthesized_expression [(identifier) (selector_expression)] @call))
(type_conversion_expression type: (generic_type type: (_) @call))
(field_declaration !name type: [(type_identifier) @inherit (qualified_type) @inherit (generic_type type: (_) @inherit)])
(interface_type (type_elem . [(type_identifier) (qualified_type)] @inherit .))
(import_spec !name path: (_) @from)
(import_spec name: (_) @alias path: (_) @from)
(composite_literal type: (qualified_type name: (_) @annotation))
(keyed_element key: (literal_element (interpreted_string_literal) @key) value: (literal_element (literal_value) @entry))
(field_declaration tag: (_) @tag)
