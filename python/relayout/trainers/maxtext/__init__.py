"""The released MaxText's own programs, run over MaxText's layout everywhere."""
