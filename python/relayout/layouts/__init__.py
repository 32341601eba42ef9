"""How each trainer names, nests and stacks a training state.

A layout is a description: it reads the leaves of a checkpoint's items into one
`State`, and places each of its leaves under a name.  Converting composes the
reading side of one layout with the placing side of another.
"""
