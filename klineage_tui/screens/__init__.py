"""Screens: the queue, evidence, history, daemon, and the prompts over them."""
