"""The text of a profile: the WHERE clause of SQL, read and written."""
