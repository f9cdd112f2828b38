"""What pytest leaves out when it looks for examples in the sources."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("triton") else ["src/beaufort/*/_*_kernels.py"]
