"""A soak of the client library: an honest load through each of its faces, while brokers restart and connections break."""
