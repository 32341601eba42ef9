"""What an Orbax item and a step say of themselves; reads no array data.

Nothing here imports JAX, Orbax, TensorStore or NumPy: a conversion must start
in a fraction of a second.
"""
