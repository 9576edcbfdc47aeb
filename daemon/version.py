"""The version both sides of the socket say they have.

A constant rather than `importlib.metadata.version`: looking it up costs a fifth of the time
`klineage status` may take. A test holds it equal to pyproject.toml's.
"""

VERSION = "0.1.0"
