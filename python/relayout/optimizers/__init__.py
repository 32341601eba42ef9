"""Optax optimizers whose states can be handed from one trainer to another.

Wrappers that trainers put around an optimizer, such as clipping, accumulation
and injected hyperparameters, nest its state.  Here they are added without
nesting it, left out where they do nothing, and taken off and put back.
"""
