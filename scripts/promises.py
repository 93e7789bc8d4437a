"""Holds what is shipped and exported to Python 3.11, also where a newer Python runs: promises.py HEADROOM

The grammar is asked for as 3.11's, and a few names of the standard library that came later are looked for. Each rule is
tried on a sample of its own first.
"""

import ast
import io
import os
import subprocess
import sys
import tempfile
import tokenize

PROMISED = (3, 11)
EXPORTED = ["gpt2-small", "qwen-14b-lora-48gb", "whisper-small-16gb"]
# "What's New" of 3.12, 3.13 and 3.14: names to import from a module, and modules.
NEWER = {
    "itertools": {"batched"},
    "typing": {"override", "TypeAliasType", "ReadOnly", "TypeIs", "NoDefault", "get_protocol_members"},
    "warnings": {"deprecated"},
    "collections.abc": {"Buffer"},
    "math": {"sumprod", "fma"},
    "copy": {"replace"},
    "queue": {"ShutDown"},
    "os": {"process_cpu_count"},
    "inspect": {"markcoroutinefunction"},
    "sys": {"monitoring"},
    "calendar": {"Month", "Day", "JANUARY"},
}
NEWER_MODULES = {"annotationlib", "compression", "concurrent.interpreters", "string.templatelib", "pathlib.types"}
NEWER_METHODS = {"walk": "Path", "full_match": "Path", "from_uri": "Path"}


def nested_quotes(text):
    """The lines of f-strings that only Python 3.12 reads, which its parser takes whatever version it is asked for."""
    if not hasattr(tokenize, "FSTRING_START"):
        return
    quotes = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.FSTRING_START:
            quote = token.string.lstrip("fFrRbBuU")
            if quotes and quotes[-1] == quote:
                yield token.start[0]
            quotes.append(quote)
        elif token.type == tokenize.FSTRING_END:
            quotes.pop()
        elif quotes and token.type == tokenize.STRING and token.string.lstrip("rRbBuU").startswith(quotes[-1]):
            yield token.start[0]


def problems(name, text):
    try:
        tree = ast.parse(text, name, feature_version=PROMISED)
    except SyntaxError as problem:
        return [f"{name}:{problem.lineno}: {problem.msg}"]
    found = [f"{name}:{line}: an f-string within its own quotes came with Python 3.12" for line in nested_quotes(text)]
    paths = any("pathlib" in ast.dump(node) for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)))
    for node in ast.walk(tree):
        newer = []
        if isinstance(node, ast.ImportFrom):
            newer = [f"{node.module}.{it.name}" for it in node.names if it.name in NEWER.get(node.module, ())]
            newer += [node.module] if node.module in NEWER_MODULES else []
        elif isinstance(node, ast.Import):
            newer = [it.name for it in node.names if it.name in NEWER_MODULES]
        elif isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.attr in NEWER.get(node.value.id, ()):
                newer = [f"{node.value.id}.{node.attr}"]
            elif paths and node.attr in NEWER_METHODS and ast.unparse(node.value) != "os":
                newer = [f"{NEWER_METHODS[node.attr]}.{node.attr}"]
        found += [f"{name}:{node.lineno}: {it} came after Python 3.11" for it in newer]
    return found


BAD = [
    "def first[T](items: list[T]) -> T: ...",
    "type Pair = tuple[int, int]",
    "f'{x['key']}'",
    "from itertools import batched",
    "import itertools\nitertools.batched([], 2)",
    "import annotationlib",
    "import pathlib\npathlib.Path().walk()",
    "try: ...\nexcept A, B: ...",
]
GOOD = ["import os, tomllib\nf'{x[\"key\"]}'\nos.walk('.')\ntry: ...\nexcept* A: ...\nmatch x:\n  case 1: ..."]

passed, failed = 0, []
for sample in BAD:
    if problems("sample", sample):
        passed += 1
    else:
        failed.append(f"a sample is not found: {sample!r}")
failed += [it for sample in GOOD for it in problems("what Python 3.11 reads", sample)]

files = subprocess.run(["git", "ls-files", "-z", "*.py"], check=True, capture_output=True, text=True).stdout.split("\0")[:-1]
with tempfile.TemporaryDirectory() as folder:
    for at, what in enumerate(EXPORTED):
        out = os.path.join(folder, str(at))
        subprocess.run([sys.argv[1], "export", what, "--target", "all", "--out", out], check=True, capture_output=True)
    exported = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names if name.endswith(".py")]
    if not exported:
        failed.append("no Python was exported")
    for path in files + exported:
        with open(path, encoding="utf-8") as file:
            wrong = problems(path, file.read())
        failed += wrong
        passed += not wrong

for it in failed:
    print(f"FAIL {it}")
print(f"{passed} passed, {len(failed)} failed")
sys.exit(bool(failed))
