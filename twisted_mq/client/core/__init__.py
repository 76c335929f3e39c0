"""Parts that producers and consumers share: a client of name servers and brokers."""
