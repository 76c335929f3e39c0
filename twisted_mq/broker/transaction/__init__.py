"""Transactional messages: half messages, what their producers decide, and asking again where they did not."""
