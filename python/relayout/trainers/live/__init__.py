"""A live NNX model and optimizer as one side of a conversion."""
