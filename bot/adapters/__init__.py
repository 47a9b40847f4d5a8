"""One technology per folder: turns people's actions into messages, and contents into the platform's form."""
