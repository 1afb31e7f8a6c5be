"""What we publish numbers from."""
