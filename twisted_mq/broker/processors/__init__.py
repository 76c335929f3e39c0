"""Request processors by subject; each has `processors`, a table from request code to the function that answers it."""
