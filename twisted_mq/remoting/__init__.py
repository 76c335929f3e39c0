"""Speaks the remoting protocol over Twisted transports: one channel class for both ends, a server factory, a client for
any address.
"""
