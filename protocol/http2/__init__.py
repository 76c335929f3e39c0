"""HTTP/2 as a server of calls speaks it (RFC 9113 and 7541): bytes in, events out, and the frames of answers."""
