// Holds the promised versions, also where newer ones run. Node.js 18: finds what it lacks in the scripts and the browser tests,
// and packages of the browser tests that ask for a newer one; each row is tried on a sample of its own first. The Rust of
// Cargo.toml: finds dependencies that ask for a newer one; clippy holds our own code to it. Python's is in promises.py.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const PROMISED = 18;
const FOLDERS = ["scripts", "tests/e2e"];

// What came after Node 18: the version that has it first, how it looks, a line that has it. Of the language, by the release
// of V8 in each Node (nodejs.org/en/download/releases) and the feature's page on MDN; of Node's own, by "Added in" of its page
// on nodejs.org/api.
const NEWER = [
  // The language.
  [20, /\.(toReversed|toSorted|toSpliced)\(/, "list.toSorted()"],
  [20, /\]\.with\(|\)\.with\(|\b\w+\.with\(\s*-?\d+\s*,/, "list.with(0, 1)"],
  [20, /\.(isWellFormed|toWellFormed)\(/, "text.isWellFormed()"],
  [20, /(?<=[=(,:?&|!]\s*)\/(?![*/])(?:\\.|[^/\\\n])+\/[dgimsuy]*v[dgimsuy]*(?=[\s.,;)])/, "const x = /[a]/v;"],
  [20, /\b(maxByteLength|resizable)\b/, "new ArrayBuffer(1, { maxByteLength: 2 })"],
  [21, /\b(Object|Map)\.groupBy\(/, "Object.groupBy(list, f)"],
  [21, /\.(transferToFixedLength|transfer)\(/, "buffer.transfer()"],
  [22, /\bArray\.fromAsync\(/, "await Array.fromAsync(list)"],
  [22, /\bPromise\.withResolvers\(/, "Promise.withResolvers()"],
  [22, /\.(union|intersection|difference|symmetricDifference|isSubsetOf|isSupersetOf|isDisjointFrom)\(/, "a.union(b)"],
  [22, /\bIterator\.from\(|\.(values|keys|entries|matchAll)\([^()]*\)\.(map|filter|take|drop|flatMap|reduce|toArray|forEach|some|every|find)\(/, "map.values().map(f)"],
  [23, /\bPromise\.try\(/, "Promise.try(f)"],
  [23, /\bIntl\.DurationFormat\b/, "new Intl.DurationFormat()"],
  [24, /\bRegExp\.escape\(/, "RegExp.escape(text)"],
  [24, /\bError\.isError\(/, "Error.isError(it)"],
  [24, /\bFloat16Array\b|\bMath\.f16round\(/, "new Float16Array(1)"],
  [24, /^\s*(await )?using \w+ =/, "using file = open();"],
  [24, /\bURLPattern\b/, "new URLPattern()"],
  [25, /\bUint8Array\.(fromBase64|fromHex)\(|\.(toBase64|toHex)\(/, "bytes.toBase64()"],
  // Node's own.
  [19, /\bglobalThis\.crypto\b|(?<![.\w])crypto\.(subtle|getRandomValues)\b/, "globalThis.crypto"],
  [19, /(?<![.\w])new CustomEvent\(/, "new CustomEvent('x')"],
  [20, /(?<![.\w])new File\(/, "new File([], 'x')"],
  [20, /\bimport\.meta\.(dirname|filename)\b/, "import.meta.dirname"],
  [20, /--env-file\b|\bprocess\.loadEnvFile\(|\bparseEnv\b/, "process.loadEnvFile()"],
  [20, /\bstyleText\b/, "import { styleText } from 'node:util'"],
  [20, /\bopenAsBlob\b/, "import { openAsBlob } from 'node:fs'"],
  [20, /\bprocess\.(getBuiltinModule|permission)\b/, "process.getBuiltinModule('fs')"],
  [20, /\bcrypto\.hash\(|import \{[^}]*\bhash\b[^}]*\} from "node:crypto"/, 'import { hash } from "node:crypto"'],
  [21, /(?<![.\w])navigator\./, "navigator.userAgent"],
  [22, /(?<![.\w])new WebSocket\(/, "new WebSocket(address)"],
  [22, /(?<![.\w])new EventSource\(/, "new EventSource(address)"],
  [22, /\b(globSync|matchesGlob)\b|\bfs(Promises)?\.glob\(|import \{[^}]*\bglob\b[^}]*\} from "node:fs/, 'import { glob } from "node:fs/promises"'],
  [22, /"node:(sqlite|sea)"/, 'import "node:sqlite"'],
  [22, /\bURL\.parse\(/, "URL.parse(text)"],
  [22, /\benableCompileCache\(/, "module.enableCompileCache()"],
  [22, /\bstripTypeScriptTypes\(/, "stripTypeScriptTypes(code)"],
];

// Functions that a browser runs, written here and sent to the page, may use what the browser has.
const IN_THE_BROWSER = /\/\/ in the browser$/;

/** What a text has that the promised Node lacks, as lines. */
const found = (name, text) =>
  text.split("\n").flatMap((line, at) => {
    if (/^\s*(\/\/|\*|\/\*)/.test(line) || IN_THE_BROWSER.test(line)) return [];
    return NEWER.filter(([, looks]) => looks.test(line)).map(([since, looks]) => `${name}:${at + 1}: ${looks.exec(line)[0].trim()} came with Node ${since}`);
  });

/** The least version that one of the alternatives of `engines.node` asks for, where it is in the usual forms. */
const least = (engines) => Math.min(...engines.split("||").map((it) => Number(/(\d+)/.exec(it)?.[1] ?? 0)));

let passed = 0;
const problems = [];
for (const [since, looks, sample] of NEWER) {
  if (since > PROMISED && found("sample", sample).length > 0) passed += 1;
  else problems.push(`the sample of ${looks} is not found`);
}
// The checker of this check: what Node 18 has is left alone.
const fine = 'list.slice().reverse(); list.findLast(f); list.at(-1); structuredClone(x); fetch("/v/"); `${x}`; text.replace(/a/g, "v")';
problems.push(...found("what Node 18 has", fine));

for (const folder of FOLDERS) {
  for (const name of readdirSync(folder).filter((it) => it.endsWith(".mjs") && it !== "promises.mjs")) {
    const path = join(folder, name);
    const wrong = found(path, readFileSync(path, "utf8"));
    problems.push(...wrong);
    if (wrong.length === 0) passed += 1;
  }
}
// One test for all packages of each kind: a list is not worth more for being long.
let before = problems.length;
for (const [path, { engines }] of Object.entries(JSON.parse(readFileSync("tests/e2e/package-lock.json", "utf8")).packages)) {
  if (engines?.node && least(engines.node) > PROMISED) problems.push(`${path}: asks for Node ${engines.node}`);
}
if (problems.length === before) passed += 1;

const number = (version) => (version ?? "0").split(".").reduce((sum, part, at) => sum + Number(part) / 1000 ** at, 0);
const json = execFileSync("cargo", ["metadata", "--format-version", "1", "--locked", "--all-features"], { maxBuffer: 1 << 28 });
const { packages } = JSON.parse(json);
const ours = packages.find((it) => it.source === null).rust_version;
before = problems.length;
for (const it of packages) {
  if (number(it.rust_version) > number(ours)) problems.push(`${it.name} ${it.version}: asks for Rust ${it.rust_version}, Cargo.toml promises ${ours}`);
}
if (problems.length === before) passed += 1;

for (const it of problems) console.log(`FAIL ${it}`);
console.log(`${passed} passed, ${problems.length} failed`);
process.exit(problems.length === 0 ? 0 : 1);
