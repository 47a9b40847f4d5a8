; YAML: keys of the first two levels that have keys of their own, such as jobs and services
(document (block_node (block_mapping (block_mapping_pair key: (_) @name value: (block_node (block_mapping))) @module)))
(document (block_node (block_mapping (block_mapping_pair value: (block_node (block_mapping
  (block_mapping_pair key: (_) @name value: (block_node (block_mapping))) @module))))))
(anchor (anchor_name) @name @constant)
(alias (alias_name) @call)
(block_mapping_pair key: (_) @_k value: (_) @from (#any-of? @_k "uses" "include" "extends"))
