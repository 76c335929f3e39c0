"""Remoting commands as bytes: frames, headers in both encodings, templates of answers."""
