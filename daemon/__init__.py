"""The daemon: one asyncio process a worktree that watches, suggests, gates, applies and remembers."""
