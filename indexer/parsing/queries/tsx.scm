; The query for TypeScript with elements.
; inherits: typescript, jsx
