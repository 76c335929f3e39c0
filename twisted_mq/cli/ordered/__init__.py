"""Implements `mq order`: declares and shows strictly ordered topics, and plans the maintenance of their broker groups."""
