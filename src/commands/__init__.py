"""What may be asked to happen: decide, then append."""
