"""Records as Arrow columns: what rows of the format have, whether their bytes come from a store or from a broker."""
