"""Compares checkpoints value by value, in whatever form each is stored.

Values are read with TensorStore, names by the rules of the layouts; nothing of
a conversion is involved.
"""
