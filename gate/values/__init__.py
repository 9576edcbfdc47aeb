"""The nouns every package shares: kernel, candidate, workload, platform, artifact, verdict.

Plain frozen values; nothing here touches a file, a process or a device.
"""
