"""Our pattern of one register, in a process of its own: `python -m bench.exact.child FILE`, with its size as JSON."""

import json
import sys
from pathlib import Path

from bench.exact.measure import alone
from bench.exact.register import Size
from bench.shared.child import say

if __name__ == "__main__":
    say(**alone(Size(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))))
