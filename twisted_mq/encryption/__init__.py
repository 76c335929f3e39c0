"""TLS of servers and clients, with the settings of Apache's tls.properties. What needs OpenSSL is loaded when it is asked for."""
