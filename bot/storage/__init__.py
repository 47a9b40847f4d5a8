"""The chat side's database, one module per table, with the lock and the permissions of the data folder."""
