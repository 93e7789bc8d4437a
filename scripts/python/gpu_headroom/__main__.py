"""The command line: `headroom`, or `python -m headroom`."""

import os
import subprocess
import sys

from ._program import program


def main() -> None:
    words = [program(), *sys.argv[1:]]
    if os.name == "nt":
        # There a process that replaces itself ends before its successor does.
        sys.exit(subprocess.run(words).returncode)
    os.execv(words[0], words)


if __name__ == "__main__":
    main()
