"""Defines strictly ordered queues that outlive their brokers: which broker group takes sends and which is consumed, as
pure rules.
"""
