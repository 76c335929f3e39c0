"""Encrypts connections of servers and clients with TLS, by the settings of Apache's tls.properties. OpenSSL is loaded
only when it is needed.
"""
