"""Trainers that save and load MaxText's layout; loads JAX."""
