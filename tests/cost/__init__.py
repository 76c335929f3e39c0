"""The worst cost of a request to its server: the processor time and calls of one turn, and the bytes that stay."""
