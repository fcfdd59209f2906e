"""Stages: each joins the lake, the sandbox and one part of the package. Plain Python; Dagster calls them."""
