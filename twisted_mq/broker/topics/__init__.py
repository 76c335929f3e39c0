"""Keeps the topics of a broker: their table, attributes, routes and dead letters."""
