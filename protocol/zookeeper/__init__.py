"""What clients of ZooKeeper and its servers send each other, as far as the embedded coordinator speaks it."""
