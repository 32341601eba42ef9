"""Says what a checkpoint is, from its metadata alone."""
