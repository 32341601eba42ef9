"""Key paths and leaf specifications: plain data, no input or output."""
