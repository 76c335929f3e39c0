"""Decides which account may do what: Apache's access control 2.0 (users, policies) and 1.0 (plain_acl.yml), checked
before a request is served.
"""
