"""What a request costs its server at worst: the processor time and calls of one turn, and the bytes that stay."""
