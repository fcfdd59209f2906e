"""Dagster: assets in pipeline order, partitions, checks, jobs, schedules. Nothing here does the work itself."""

import warnings

import dagster as dg

# Backfill policies are what makes batches; Dagster is pinned exactly, so that they cannot change under us.
warnings.filterwarnings("ignore", "Parameter `backfill_policy`", dg.BetaWarning)
