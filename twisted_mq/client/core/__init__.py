"""What producers and consumers share: one client of name servers and brokers."""
