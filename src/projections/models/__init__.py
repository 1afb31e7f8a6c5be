"""The models that turn texts into vectors and judge answers: which are known, where each is, and how it runs."""
