"""Ottla beside Apache Kafka, and beside the limits of the machine, in one run.

`python -m benchmarks` runs all, `python -m benchmarks small fetch` some; docs/performance.md says
what each one measures. Linux only: CPU time and memory are read from /proc.
"""
