"""What the end-to-end tests share: see the modules."""
