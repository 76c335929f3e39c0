"""Filters messages by their properties: SQL92 expressions, the groups that registered them, and bit maps that speed them up."""
