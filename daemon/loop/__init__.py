"""The loop: a saved file becomes a target, suggestions, jobs of the gate, and a change.

board.py       what is known now: files, kernels, suggestions, verdicts
detecting.py   a batch of changed files → kernels, targets, ranked suggestions
gate_queue.py  one job at a time on the device; newer saves cancel what they made stale
gating.py      which jobs a kernel needs next, and what their verdicts mean
changing.py    apply, reject, undo, redo
views.py       all of it as the flat types of daemon.protocol
"""
