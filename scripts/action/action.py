"""The steps of the GitHub Action (action.yml): action.py install | check | comment | verdict

What it is told comes by the environment, as HEADROOM_… from action.yml and GITHUB_… from the runner; it runs on Python 3.8 and
newer without packages.
"""

import glob
import hashlib
import io
import json
import os
import platform
import shlex
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
import zipfile

MARK = "<!-- headroom check -->"
WORDS = {0: "fits", 1: "does not fit", 2: "cannot say"}


def told(name, default=""):
    return os.environ.get(f"HEADROOM_{name}", "").strip() or default


def fetch(url, token="", method="GET", body=None):
    headers = {"User-Agent": "headroom-action", "Accept": "application/vnd.github+json" if token else "*/*"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers=headers, method=method)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return answer.read()


def target():
    """The kind of machine that a release has a program for."""
    machine = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}.get(platform.machine().lower())
    system = {"linux": "unknown-linux-musl", "darwin": "apple-darwin", "win32": "pc-windows-msvc"}.get(sys.platform)
    if machine is None or system is None:
        sys.exit(f"there is no program for {sys.platform} on {platform.machine()}: build it and name it by `binary`")
    return f"{machine}-{system}"


def install():
    """Downloads the release's program, checks its hash, and says where it is."""
    given = told("BINARY")
    if given:
        return output("binary", os.path.abspath(given))
    version = told("VERSION").removeprefix("v") if hasattr(str, "removeprefix") else told("VERSION").lstrip("v")
    name = f"headroom-{version}-{target()}" + (".zip" if sys.platform == "win32" else ".tar.gz")
    releases = f"{told('RELEASES')}/v{version}"
    archive = fetch(f"{releases}/{name}")
    expected = told("SHA256") or listed(fetch(f"{releases}/SHA256SUMS").decode(), name)
    found = hashlib.sha256(archive).hexdigest()
    if found != expected.lower():
        sys.exit(f"{name}: its SHA-256 is {found}, expected {expected}")
    folder = os.path.join(os.environ.get("RUNNER_TEMP") or ".", "headroom")
    os.makedirs(folder, exist_ok=True)
    program = os.path.join(folder, "headroom.exe" if sys.platform == "win32" else "headroom")
    with open(program, "wb") as file:
        file.write(member(archive, name, os.path.basename(program)))
    os.chmod(program, 0o755)
    print(f"{name}: SHA-256 {found}, as the release lists it")
    output("binary", program)


def listed(sums, name):
    """The hash of a file in the list of a release."""
    for line in sums.splitlines():
        digest, _, file = line.partition("  ")
        if file.strip().lstrip("*") == name:
            return digest
    sys.exit(f"SHA256SUMS of the release does not list {name}")


def member(archive, name, program):
    """The program in an archive; nothing is unpacked by the paths that an archive names."""
    if name.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(archive)) as files:
            return files.read(next(path for path in files.namelist() if path.rsplit("/", 1)[-1] == program))
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        entry = next(one for one in files.getmembers() if one.isfile() and one.name.rsplit("/", 1)[-1] == program)
        return files.extractfile(entry).read()


def runs():
    """Each line is a run: the words after `headroom check`; one with a pattern is a run for each file."""
    found = []
    for line in told("FILES").splitlines():
        words = shlex.split(line, comments=True)
        if len(words) == 1 and glob.has_magic(words[0]):
            found += [[path] for path in sorted(glob.glob(words[0], recursive=True)) if os.path.isfile(path)]
        elif words:
            found.append(words)
    return found


def changed():
    """The files that a pull request changes; None where that is not known, so that all are looked at."""
    base = told("BASE")
    if told("CHANGED", "true") != "true" or not base:
        return None
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if subprocess.run(["git", "cat-file", "-e", f"{base}^{{commit}}"], **quiet).returncode:
        subprocess.run(["git", "fetch", "--quiet", "--depth=1", "origin", base], **quiet)
    asked = subprocess.run(["git", "diff", "--name-only", "-z", base, "HEAD"], capture_output=True, text=True)
    return set(asked.stdout.split("\0")) - {""} if asked.returncode == 0 else None


def check():
    """Runs `headroom check` for each run, and writes the report."""
    options = ["--gpu", told("GPU")] if told("GPU") else []
    for change in told("SET").splitlines():
        options += ["--set", change.strip()] if change.strip() else []
    touched, parts, worst = changed(), [], 0
    for words in runs():
        if touched is not None and not touched & {os.path.normpath(word).replace(os.sep, "/") for word in words}:
            continue
        done = subprocess.run([told("PROGRAM"), "check", *options, "--json", "--", *words], capture_output=True, text=True, encoding="utf-8")
        answer = json.loads(done.stdout) if done.stdout.startswith("{") else {"errors": [done.stderr.strip()]}
        code = done.returncode if done.returncode in WORDS else 2
        worst = max(worst, code)
        parts.append(part(" ".join(words), code, answer))
        print(f"{WORDS[code]}: {' '.join(words)}: {answer.get('verdict') or '; '.join(answer.get('errors', []))}")
    text = "\n".join([MARK, "### Does it fit?", "", *parts]) if parts else ""
    report = os.path.join(os.environ.get("RUNNER_TEMP") or ".", "headroom-report.md")
    with open(report, "w", encoding="utf-8") as file:
        file.write(text)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary and text:
        with open(summary, "a", encoding="utf-8") as file:
            file.write(text + "\n")
    if not parts:
        print("no run changed")
    output("report", report)
    output("code", str(worst))
    output("verdict", WORDS[worst] if parts else "nothing to check")


def part(name, code, answer):
    """A run's part of the report. All text stands in code, so that no file's words become Markdown."""
    lines = [f"{'✅' if code == 0 else '❌' if code == 1 else '❔'} {coded(name)} — **{WORDS[code]}**", ""]
    if answer.get("verdict"):
        lines += [coded(answer["verdict"]), ""]
    lines += [f"- {coded(line)}" for line in answer.get("errors", [])]
    if answer.get("assumed"):
        lines += [f"- assuming {coded(answer['assumed'])}"]
    lines += [f"- not modelled: {coded(line)}" for line in answer.get("not_modelled") or []]
    link = answer.get("link", "")
    if link and told("PAGE"):
        lines += [f"- [open it]({told('PAGE')}{link.replace(' ', '%20').replace(')', '%29')})"]
    elif link:
        lines += [f"- `headroom open`: {coded(link)}"]
    return "\n".join([*lines, ""])


def coded(text):
    text = " ".join(str(text).replace("`", "'").split())
    return f"`{text}`"


def comment():
    """Writes the report to the pull request, over the one that stands there."""
    number, token = told("PULL"), told("TOKEN")
    with open(told("REPORT"), encoding="utf-8") as file:
        text = file.read()
    if told("COMMENT", "true") != "true" or not (number and token and text):
        return
    issues = f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/issues"
    try:
        own = None
        for page in range(1, 11):
            found = json.loads(fetch(f"{issues}/{number}/comments?per_page=100&page={page}", token))
            own = next((one for one in found if str(one.get("body", "")).startswith(MARK)), own)
            if own or len(found) < 100:
                break
        if own:
            fetch(f"{issues}/comments/{own['id']}", token, "PATCH", {"body": text})
        else:
            fetch(f"{issues}/{number}/comments", token, "POST", {"body": text})
    except urllib.error.HTTPError as problem:
        # A pull request from a fork has a token that only reads.
        print(f"::warning::the report could not be written to the pull request ({problem}); it is in the job's summary")


def verdict():
    """Ends the job as it was told to."""
    code, mode = int(told("CODE", "0")), told("ON_FAILURE", "fail")
    if code == 0:
        return
    said = f"a run {WORDS[code]}" if code == 1 else "for a run it cannot be said whether it fits"
    if mode == "warn" or (mode == "fail-if-known" and code == 2):
        print(f"::warning::{said}")
        return
    print(f"::error::{said}")
    sys.exit(code)


def output(name, value):
    path = os.environ.get("GITHUB_OUTPUT")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{name}={value}\n")


if __name__ == "__main__":
    {"install": install, "check": check, "comment": comment, "verdict": verdict}[sys.argv[1]]()
