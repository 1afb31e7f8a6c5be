"""What it adds up to: disposable read models."""
