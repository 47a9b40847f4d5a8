-- What is under way in a conversation is told by its newest checkpoint alone.

DROP TABLE agent_executions;
