"""Implements `mq spark JOB`: jobs over store directories, with one frame for all."""
