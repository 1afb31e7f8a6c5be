"""What happened: facts, bytes, signatures and the storage of the logs."""
