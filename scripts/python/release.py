"""Writes what a release has for one kind of machine: release.py BUILT VERSION TARGET FOLDER

The program in an archive, with its licences, completions and manual pages, and in a wheel. BUILT is the folder of the built
program; it is asked for completions and manual, so that it must run here.
"""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tarfile
import zipfile

import wheel

SHELLS = {"bash": "headroom.bash", "zsh": "_headroom", "fish": "headroom.fish", "powershell": "headroom.ps1"}


def contents(path: str, version: str) -> dict[str, tuple[bytes, int]]:
    """The archive's files with their modes."""
    asked = lambda *words: subprocess.run([path, *words], check=True, capture_output=True).stdout
    said = asked("--version").decode().strip()
    if said != f"headroom {version}":
        sys.exit(f"the program is {said!r}, not {version}")
    with open(path, "rb") as program:
        held = {os.path.basename(path): (program.read(), 0o755)}
    for shell, name in SHELLS.items():
        held[f"completions/{name}"] = (asked("completions", shell), 0o644)
    held["man/headroom.1"] = (asked("man"), 0o644)
    for name in ("README.md", "CHANGELOG.md", *wheel.LICENCES):
        with open(os.path.join(wheel.ROOT, name), "rb") as file:
            held[name] = (file.read(), 0o644)
    return held


def archive(name: str, held: dict[str, tuple[bytes, int]], folder: str) -> str:
    """A .zip for Windows, a .tar.gz for others; equal inputs make equal bytes."""
    if "windows" in name:
        path = os.path.join(folder, f"{name}.zip")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as files:
            for file, (content, mode) in held.items():
                entry = zipfile.ZipInfo(f"{name}/{file}")
                entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
                files.writestr(entry, content)
        return path
    path = os.path.join(folder, f"{name}.tar.gz")
    # gzip would write down when.
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as files:
        for file, (content, mode) in held.items():
            entry = tarfile.TarInfo(f"{name}/{file}")
            entry.size, entry.mode = len(content), mode
            files.addfile(entry, io.BytesIO(content))
    return path


def main() -> None:
    built, version, target, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(built, "headroom.exe" if "windows" in target else "headroom")
    held = contents(path, version)
    print(archive(f"headroom-{version}-{target}", held, folder))
    print(wheel.write(next(iter(held.values()))[0], folder))


if __name__ == "__main__":
    main()
