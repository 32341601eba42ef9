"""The command line: parses arguments and prints; decides nothing itself."""
