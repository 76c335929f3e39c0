"""What jobs find: figures, tables and pictures, as values, as a page."""
