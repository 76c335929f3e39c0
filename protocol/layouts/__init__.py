"""Byte layouts, each declared once with construct, with its fast forms beside it."""
