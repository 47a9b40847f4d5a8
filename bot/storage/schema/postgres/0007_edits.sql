-- When a message was edited last, by its platform; what is told of an edit twice, or too late, changes nothing.

ALTER TABLE inbox ADD COLUMN edited_at DOUBLE PRECISION NOT NULL DEFAULT 0;
