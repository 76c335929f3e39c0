"""Serves the web console: pages for operators of a cluster, rendered on the server, with the same requests as the admin tools.

The console knows servers only by their addresses, so it shows Apache's servers like this project's.
"""
