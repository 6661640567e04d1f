"""Programs made to run: bound to sizes and types as tables, walked by cursors, driven by one engine."""
