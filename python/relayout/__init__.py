"""relayout: hands a checkpoint from one JAX trainer to the next.

Importing this package imports neither JAX nor NumPy.
"""

__version__ = "0.1.0"
