"""Reads git: repositories and their objects, the mainline, and what makes a change a candidate for a task."""
