"""What relayout costs, beside the other ways to the same result."""
