"""Text as Java writes it: strings and their hashes, fastjson's JSON, the text form of properties."""
