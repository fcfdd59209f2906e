"""evalpipe: a private benchmark for coding agents, made from a team's own git history."""
