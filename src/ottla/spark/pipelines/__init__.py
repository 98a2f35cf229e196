"""Declared pipelines: model, check, run."""
