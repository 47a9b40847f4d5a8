"""One technology per folder: turns what people do into messages, and contents into what a platform shows."""
