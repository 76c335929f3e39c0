"""Serves transactional messages: half messages, their producers' decisions, and checks of undecided ones."""
