"""Jobs over the table of messages: each is a function from a data frame with the source's columns to a smaller data frame."""
