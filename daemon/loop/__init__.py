"""The loop: a saved file becomes a target, suggestions, jobs of the gate, and a change.

board.py       what is known now: files, kernels, suggestions, verdicts
detecting.py   the bytes of a file → kernels with their state → ranked suggestions
loop.py        a batch of changed files → the board, and what is to be gated
gate_queue.py  one job at a time on the device; newer saves cancel what they made stale
devices.py     what each language's kernels run on
gating.py      what is gated of a kernel unasked, and in which order
evaluating.py  one question to the gate, its answer on the board, in the journal, in evidence
settling.py    what the journal and the queue know already of a fresh suggestion
refusals.py    the gate's failures as what a client is told
trials.py      verdicts and rejections as evidence of their cards
changing.py    apply, reject, undo, redo
publishing.py  every change of the board told to the clients
views.py       all of it as the flat types of daemon.protocol
"""
