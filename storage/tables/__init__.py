"""The broker's JSON tables in `config/`."""
