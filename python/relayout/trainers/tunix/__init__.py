"""Tunix's trainers over MaxText's layout."""
