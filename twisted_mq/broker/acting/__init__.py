"""The duties of a slave in place of a lost master, and the questions of the master that returns (enableSlaveActingMaster)."""
