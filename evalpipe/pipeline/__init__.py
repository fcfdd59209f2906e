"""Dagster: assets in pipeline order, partitions, checks, jobs, schedules. Nothing here does the work itself."""
