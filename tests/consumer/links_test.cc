// Links with one library of relayout, of which it uses nothing.
int main() { return 0; }
