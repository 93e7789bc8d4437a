"""Writes the wheel: wheel.py PROGRAM FOLDER

A wheel is an archive with a list of what is in it. This one holds the package beside this file and the program, built for
one kind of machine. Equal inputs make equal bytes.
"""

from __future__ import annotations

import base64
import hashlib
import os
import platform
import re
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def tag(program: bytes) -> str:
    """The machines on which it runs: of Linux, those whose glibc has what the program asks for."""
    machine = platform.machine().lower()
    if sys.platform == "darwin":
        return f"macosx_{'11_0' if machine == 'arm64' else '10_12'}_{machine}"
    if sys.platform == "win32":
        return "win_arm64" if machine == "arm64" else "win_amd64"
    # The names of versions stand in the program as text; one that is linked with musl names none.
    minors = [int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", program)]
    if not minors:
        return f"manylinux_2_17_{machine}.musllinux_1_1_{machine}"
    return f"manylinux_2_{max(17, *minors)}_{machine}"


def metadata(package: dict) -> str:
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    lines = {
        "Metadata-Version": "2.4",
        "Name": package["name"],
        "Version": package["version"],
        "Summary": package["description"],
        "License-Expression": package["license"],
        "Requires-Python": ">=3.10",
        "Description-Content-Type": "text/markdown",
    }
    return "".join(f"{name}: {value}\n" for name, value in lines.items()) + f"\n{readme}"


def files(package: dict, program: bytes, tagged: str) -> dict[str, bytes]:
    """What the wheel holds, by its path, but for the list of it."""
    name = package["name"]
    info = f"{name}-{package['version']}.dist-info"
    held = {}
    for file in sorted(os.listdir(os.path.join(HERE, name))):
        if file.endswith((".py", ".typed")):
            with open(os.path.join(HERE, name, file), "rb") as source:
                held[f"{name}/{file}"] = source.read()
    held[f"{name}/bin/{name}{'.exe' if tagged.startswith('win') else ''}"] = program
    tags = "".join(f"Tag: py3-none-{one}\n" for one in tagged.split("."))
    texts = {
        "METADATA": metadata(package),
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: {name} ({package['version']})\nRoot-Is-Purelib: false\n{tags}",
        "entry_points.txt": f"[console_scripts]\n{name} = {name}.__main__:main\n",
    }
    held.update({f"{info}/{file}": text.encode() for file, text in texts.items()})
    for licence in ("LICENSE", "LICENSE-APACHE", "LICENSE-MIT"):
        with open(os.path.join(ROOT, licence), "rb") as source:
            held[f"{info}/licenses/{licence}"] = source.read()
    return held


def write(program: bytes, folder: str) -> str:
    """Writes the wheel into the folder and returns its path."""
    package = {}
    # The command line's manifest says what the workspace's says for all crates.
    for manifest, head in [("Cargo.toml", "[workspace.package]"), ("crates/headroom/Cargo.toml", "[package]")]:
        with open(os.path.join(ROOT, manifest), encoding="utf-8") as file:
            section = file.read().split(head, 1)[1].split("\n[", 1)[0]
        package |= re.findall(r'^(name|version|license|description) = "(.*)"$', section, re.M)
    tagged = tag(program)
    held = files(package, program, tagged)
    record = f"{package['name']}-{package['version']}.dist-info/RECORD"
    lines = []
    for path, content in held.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(content)}\n")
    held[record] = "".join([*lines, f"{record},,\n"]).encode()
    os.makedirs(folder, exist_ok=True)
    wheel = os.path.join(folder, f"{package['name']}-{package['version']}-py3-none-{tagged}.whl")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in held.items():
            entry = zipfile.ZipInfo(path)
            mode = 0o755 if "/bin/" in path else 0o644
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return wheel


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as built:
        print(write(built.read(), sys.argv[2]))
