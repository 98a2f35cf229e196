"""A broker and its clients in virtual time, from a seed: what is simulated, and what is checked."""
