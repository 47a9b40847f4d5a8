; The query for Elixir.

(call target: (identifier) @_define (arguments . (alias) @name) (do_block)? @body
  (#any-of? @_define "defmodule" "defprotocol")) @module
(call target: (identifier) @_define (arguments . (alias) @name) (#eq? @_define "defimpl")) @scope
(call target: (identifier) @_define (arguments .
    [(identifier) @name (call target: (identifier) @name @silent)
     (binary_operator left: [(identifier) @name (call target: (identifier) @name @silent)])]
    (keywords)? @body) (do_block)? @body
  (#any-of? @_define "def" "defp" "defdelegate" "defguard" "defguardp")) @function
(call target: (identifier) @_define (arguments .
    [(identifier) @name (call target: (identifier) @name @silent)
     (binary_operator left: [(identifier) @name (call target: (identifier) @name @silent)])]
    (keywords)? @body) (do_block)? @body
  (#any-of? @_define "defmacro" "defmacrop")) @macro
(unary_operator operand: (call target: (identifier) @_attribute)
  (#any-of? @_attribute "spec" "impl" "deprecated")) @prefix @silent
(unary_operator operand: (call target: (identifier) @_attribute) (#any-of? @_attribute "doc" "moduledoc")) @doc
(unary_operator operand: (call target: (identifier) @_attribute)
  (#any-of? @_attribute "type" "typep" "opaque" "callback" "macrocallback")) @silent
(unary_operator "@" operand: (call target: (identifier) @silent))
(call target: (identifier) @call (#not-match? @call "^(def(|p|module|protocol|impl|macro|macrop|delegate|guard|guardp|struct|exception|overridable)|alias|import|use|require|if|unless|case|cond|with|for|quote|unquote|try|receive)$"))
(call target: (dot left: (_) @on right: (identifier) @call))
(unary_operator operand: (call target: (identifier) @_attribute (arguments . (alias) @inherit))
  (#eq? @_attribute "behaviour"))
(call target: (identifier) @_import (arguments . (alias) @from .)
  (#any-of? @_import "alias" "import" "use" "require"))
(call target: (identifier) @_import (arguments . (alias) @from (keywords))
  (#any-of? @_import "alias" "import" "use" "require"))
(call target: (identifier) @_import (arguments . (alias) @from
  (keywords (pair key: (keyword) @_as value: (alias) @alias))) (#eq? @_import "alias") (#match? @_as "^as:"))
(call target: (identifier) @_import (arguments . (dot right: (tuple)) @tree) (#eq? @_import "alias"))
