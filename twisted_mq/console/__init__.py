"""The web console: pages for people who run a cluster, made on the server, over the same requests as the admin tools.

It knows servers by their addresses alone, so Apache's are looked at as this project's are.
"""
