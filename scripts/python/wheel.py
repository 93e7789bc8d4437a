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
import subprocess
import sys
import zipfile

# The name of the import, and of files.
MODULE = "gpu_headroom"
LICENCES = ("LICENSE", "LICENSE-APACHE", "LICENSE-MIT")
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


CLASSIFIERS = (
    "Development Status :: 4 - Beta",
    "Environment :: Console",
    "Environment :: GPU :: NVIDIA CUDA",
    "Intended Audience :: Developers",
    "Intended Audience :: Science/Research",
    "Operating System :: MacOS",
    "Operating System :: Microsoft :: Windows",
    "Operating System :: POSIX :: Linux",
    "Programming Language :: Python :: 3",
    "Programming Language :: Python :: 3 :: Only",
    "Programming Language :: Rust",
    "Topic :: Scientific/Engineering :: Artificial Intelligence",
    "Typing :: Typed",
)


def repository() -> str:
    """Where this is kept: as the workflow knows, or the clone's origin; empty if neither."""
    server, name = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    if server and name:
        return f"{server}/{name}"
    asked = subprocess.run(["git", "-C", ROOT, "remote", "get-url", "origin"], capture_output=True, text=True)
    url = re.sub(r"^git@([^:]+):", r"https://\1/", asked.stdout.strip()).removesuffix(".git")
    return url if url.startswith("https://") and "@" not in url else ""


def description(version: str, home: str) -> str:
    """The package's own page. An index shows no relative picture: those stay where they are kept, or are left out."""
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as file:
        text = file.read()
    if not home:
        return re.sub(r"<!-- picture -->.*?<!-- end -->\n*", "", text, flags=re.S)
    raw = home.replace("https://github.com/", "https://raw.githubusercontent.com/") + f"/v{version}/"
    return re.sub(r'src="\.\./\.\./', f'src="{raw}', text).replace("](../../", f"]({home}/blob/v{version}/")


def metadata(package: dict) -> str:
    home = repository()
    urls = {"Homepage": home, "Source": home, "Issues": f"{home}/issues", "Changelog": f"{home}/blob/main/CHANGELOG.md"} if home else {}
    lines = [
        ("Metadata-Version", "2.4"),
        ("Name", package["name"]),
        ("Version", package["version"]),
        ("Summary", package["description"]),
        ("Author", "Headroom developers"),
        ("License-Expression", package["license"]),
        *(("License-File", name) for name in LICENCES),
        ("Keywords", "pytorch,gpu,memory,vram,training,fine-tuning,lora,fsdp,deepspeed,out-of-memory"),
        *(("Classifier", name) for name in CLASSIFIERS),
        *(("Project-URL", f"{name}, {url}") for name, url in urls.items()),
        ("Requires-Python", ">=3.10"),
        ("Description-Content-Type", "text/markdown"),
    ]
    return "".join(f"{name}: {value}\n" for name, value in lines) + f"\n{description(package['version'], home)}"


def files(package: dict, program: bytes, tagged: str) -> dict[str, bytes]:
    """What the wheel holds, by its path, but for the list of it."""
    info = f"{MODULE}-{package['version']}.dist-info"
    held = {}
    for file in sorted(os.listdir(os.path.join(HERE, MODULE))):
        if file.endswith((".py", ".typed")):
            with open(os.path.join(HERE, MODULE, file), "rb") as source:
                held[f"{MODULE}/{file}"] = source.read()
    held[f"{MODULE}/bin/headroom{'.exe' if tagged.startswith('win') else ''}"] = program
    tags = "".join(f"Tag: py3-none-{one}\n" for one in tagged.split("."))
    texts = {
        "METADATA": metadata(package),
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: {package['name']} ({package['version']})\nRoot-Is-Purelib: false\n{tags}",
        "entry_points.txt": f"[console_scripts]\nheadroom = {MODULE}.__main__:main\n",
    }
    held.update({f"{info}/{file}": text.encode() for file, text in texts.items()})
    for licence in LICENCES:
        with open(os.path.join(ROOT, licence), "rb") as source:
            held[f"{info}/licenses/{licence}"] = source.read()
    return held


def manifest() -> dict[str, str]:
    """What the command line's manifest says, or the workspace's for all crates."""
    package: dict[str, str] = {}
    for path, head in [("Cargo.toml", "[workspace.package]"), ("crates/headroom/Cargo.toml", "[package]")]:
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            section = file.read().split(head, 1)[1].split("\n[", 1)[0]
        package |= re.findall(r'^(name|version|license|description) = "(.*)"$', section, re.M)
    return package


def write(program: bytes, folder: str) -> str:
    """Writes the wheel into the folder and returns its path."""
    package = manifest()
    tagged = tag(program)
    held = files(package, program, tagged)
    record = f"{MODULE}-{package['version']}.dist-info/RECORD"
    lines = []
    for path, content in held.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(content)}\n")
    held[record] = "".join([*lines, f"{record},,\n"]).encode()
    os.makedirs(folder, exist_ok=True)
    wheel = os.path.join(folder, f"{MODULE}-{package['version']}-py3-none-{tagged}.whl")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, content in held.items():
            entry = zipfile.ZipInfo(path)
            mode = 0o755 if "/bin/" in path else 0o644
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content, compresslevel=9)
    return wheel


def build_wheel(folder: str, settings: object = None, metadata_folder: object = None) -> str:
    """What pip calls (PEP 517): builds the program as ./scripts/wheel does."""
    subprocess.run([os.path.join(ROOT, "scripts", "wheel"), folder], check=True, stdout=subprocess.DEVNULL)
    return next(name for name in os.listdir(folder) if name.startswith(MODULE) and name.endswith(".whl"))


def build_sdist(folder: str, settings: object = None) -> str:
    raise NotImplementedError("the source is the repository")


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as built:
        print(write(built.read(), sys.argv[2]))
