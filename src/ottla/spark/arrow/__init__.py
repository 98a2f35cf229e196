"""Record batches to Arrow columns, and back."""
