"""Tests that throw broken input at whatever reads from outside."""
