"""Filters of messages by their properties: SQL92 expressions, who registered them, and the bit maps that shorten them."""
