"""On what a run was measured: figures without their machine mean nothing."""

import os
import platform
import re
from datetime import UTC, datetime
from pathlib import Path


def describe() -> dict[str, str]:
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": cpu[1] if cpu else platform.machine(),
        "cores": str(os.cpu_count()),
        "memory_gb": f"{int(memory[1]) / 1e6:.0f}" if memory else "?",
        "kernel": platform.release(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "load_before": f"{os.getloadavg()[0]:.1f}",
    }
