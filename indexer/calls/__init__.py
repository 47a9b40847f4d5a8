"""Who calls whom: the uses of a name, and the definition that each of them means."""
