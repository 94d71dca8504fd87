"""Plain results that cross threads, files and screens; this package imports nothing."""
