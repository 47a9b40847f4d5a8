"""Works towards a goal in a loop of planning, acting and checking, until its check passes."""
