"""Results of jobs: numbers, tables and charts, as values and as a page."""
