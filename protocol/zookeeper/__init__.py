"""The protocol between clients of ZooKeeper and its servers, as far as the embedded coordinator speaks it."""
