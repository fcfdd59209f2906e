"""Statistics over tasks: pure functions, scipy at run time, no random numbers but seeded ones."""
