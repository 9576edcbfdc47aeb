"""The gate's workers. Started by path, in the interpreter the user named, under a private name.

Standard library, numpy and the language's own runtime only; relative imports only, since in a
worker this folder is not called `gate.worker` (the user's repository may own a `gate.py`).
"""
