"""Tables that statements of many dialects create, read and change."""

from __future__ import annotations

import pytest

from indexer.parsing.registrations.sql_statements import find_table_uses

# With the names that are changed or created before the arrow, and those that are read behind it.
STATEMENTS = {
    "DELETE FROM carts USING users u WHERE carts.user_id = u.id": "carts <- users",
    "MERGE INTO stock s USING deliveries d ON s.id = d.id WHEN MATCHED THEN UPDATE SET n = 1": "stock <- deliveries",
    "SELECT * FROM a JOIN b USING (id)": "<- a b",
    "SELECT * FROM generate_series(1, 10) g, orders": "<- orders",
    "SELECT * FROM (SELECT * FROM a) x, b": "<- a b",
    "DROP TABLE IF EXISTS a, b CASCADE": "a b <-",
    "TRUNCATE TABLE a, b": "a b <-",
    "COPY orders (id) TO STDOUT": "<- orders",
    "COPY orders FROM STDIN": "orders <-",
    "DELETE o FROM orders o JOIN refunds r ON r.id = o.id": "orders <- refunds",
    "DELETE TOP (10) FROM dbo.Logs": "dbo.Logs <-",
    "CREATE TABLE a LIKE b": "a <- b",
    "CREATE OR REPLACE TRANSIENT TABLE a CLONE raw.b": "a <- raw.b",
    "INSERT ALL INTO a (x) VALUES (1) INTO b (y) VALUES (2) SELECT * FROM c": "a b <- c",
    "INSERT OVERWRITE TABLE a SELECT * FROM b": "a <- b",
    "FROM c INSERT OVERWRITE TABLE a SELECT x INSERT OVERWRITE TABLE b SELECT y": "a b <- c",
    "LOAD DATA INFILE 'x' INTO TABLE imports": "imports <-",
    "RENAME TABLE a TO b": "a <-",
    "UPDATE a, b SET a.x = b.x": "a <- b",
    "SELECT * FROM a ARRAY JOIN items ANY LEFT JOIN b USING id": "<- a b",
    "SELECT * FROM a WHERE name LIKE b": "<- a",
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_what_a_statement_changes_and_what_it_reads_is_told_apart(statement: str) -> None:
    uses = list(find_table_uses(statement))
    changed = [one.name for one in uses if one.action != "read"]
    read = sorted(one.name for one in uses if one.action == "read")

    assert f"{' '.join(changed)} <- {' '.join(read)}".strip() == STATEMENTS[statement]
