"""Tests that mirror the source, module by module."""
