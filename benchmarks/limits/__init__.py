"""What this machine gives a Python process at most: servers that leave the work of a broker out.

Each is started as `python -m benchmarks.limits.<name> PORT ...` and takes the requests of the load
generator. They parse no more than they must, know no topics, and are no example to follow.
"""
