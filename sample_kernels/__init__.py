"""Kernels the demo plays on: an operator a folder, a surface language below it, naive and expert."""
