"""Ways in: thin, with no rules of their own."""
