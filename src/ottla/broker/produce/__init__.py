"""The data path of producers."""
