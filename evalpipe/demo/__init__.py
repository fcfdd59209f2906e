"""The demo repository: a small library with a history that has every kind of change, built from text."""
