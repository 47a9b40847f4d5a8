"""From the text of a file to its outline, references and chunks, by tree-sitter."""
