; The query for C.
; inherits: c_family
