"""The gate: does a candidate kernel build, compute the right answer, and run faster?

Imports nothing of ours. torch, triton, cupy and pyopencl are imported in `gate/worker` only.
"""
