-- The commit that the newest run of a conversation reads of each repository, as JSON; earlier versions kept it in the
-- checkpoint, from which the first claim takes it over.

ALTER TABLE conversations ADD COLUMN commits TEXT;
