// Replaced by the first commit.
