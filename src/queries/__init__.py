"""What can be asked: read only."""
