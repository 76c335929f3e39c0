"""Apache's gRPC clients of 5.x: how they are installed, small programs with them, the scenarios they all run."""
