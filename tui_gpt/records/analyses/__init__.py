"""What `analysis` finds in a trace, as plain values."""
