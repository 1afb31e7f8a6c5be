"""Memory for AI agents that can be held to account."""
