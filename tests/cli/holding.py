"""A command that holds something until its input ends, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

COMMAND = """
import sys
from sfumato import cli
from sfumato.engine.connect import spark_session
from sfumato.engine.connect import spill_folder

def hold() -> None:
    {held}
        print("held", flush=True)
        sys.stdin.read()

cli.COMMANDS["hold"] = ("__main__:hold", "Hold it.")
sys.argv = ["sfumato", "hold"]
cli.main()
"""


def holding(held: str, *, temporary: Path, ignored: tuple[int, ...] = ()) -> "subprocess.Popen[str]":
    """Start the command with a temporary folder of its own, and wait until it holds what the `held` statement opens.

    Only `ignored` signals are, whatever those who run the tests ignore: `nohup make test &` ignores two of them.
    """
    begin = "import signal\n"
    begin += "signal.signal(signal.SIGINT, signal.default_int_handler)\nsignal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
    begin += "".join(f"signal.signal({number}, signal.SIG_IGN)\n" for number in ignored)
    child = subprocess.Popen(
        [sys.executable, "-c", begin + COMMAND.format(held=held)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    assert child.stdout
    assert child.stdout.readline() == "held\n"
    assert list(temporary.glob("sfumato-*"))
    return child
