"""Traces and weights in, records out; one idea a file."""
