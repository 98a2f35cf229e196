"""Real clusters under real faults, with stock clients: `make chaos` and `make power-loss`.

Whatever the clients did and saw is judged by the same checker as simulated ones.
"""
