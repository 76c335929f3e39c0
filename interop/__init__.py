"""Proof against real peers: Apache's servers, clients and admin tool on one side, this project's on the other."""
