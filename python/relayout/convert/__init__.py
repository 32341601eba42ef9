"""Converts checkpoints: a plan of plain data, then its application."""
