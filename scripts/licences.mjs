// Checks, without network, that each dependency's licence is on the list in deny.toml and that it comes from the registry.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

const list = /^allow = \[([^\]]*)\]/m.exec(readFileSync("deny.toml", "utf8"));
if (!list) throw new Error("deny.toml: expected a list `allow`");
const allowed = new Set([...list[1].matchAll(/"([^"]+)"/g)].map((it) => it[1]));

/** Whether the licences allowed satisfy an SPDX expression: `OR` asks for one side, `AND` for both. */
function satisfied(expression) {
  const tokens = expression.replaceAll("/", " OR ").match(/\(|\)|[^\s()]+/g);
  let at = 0;
  const one = () => {
    if (tokens[at] === "(") {
      at += 1;
      const inner = either();
      at += 1;
      return inner;
    }
    let name = tokens[at++];
    if (tokens[at] === "WITH") {
      name += ` WITH ${tokens[at + 1]}`;
      at += 2;
    }
    return allowed.has(name);
  };
  const both = () => {
    let all = one();
    while (tokens[at] === "AND") {
      at += 1;
      all = one() && all;
    }
    return all;
  };
  const either = () => {
    let any = both();
    while (tokens[at] === "OR") {
      at += 1;
      any = both() || any;
    }
    return any;
  };
  return either();
}

const json = execFileSync("cargo", ["metadata", "--format-version", "1", "--locked", "--all-features"], { maxBuffer: 1 << 28 });
const others = JSON.parse(json).packages.filter((it) => it.source !== null);
const problems = others.flatMap(({ name, version, license, source }) => {
  const found = [];
  if (!license) found.push(`${name} ${version}: expected a licence expression, found none`);
  else if (!satisfied(license)) found.push(`${name} ${version}: licence ${license} is not on the list in deny.toml`);
  if (!source.startsWith("registry+")) found.push(`${name} ${version}: comes from ${source}, expected the registry`);
  return found;
});
for (const problem of problems) console.log(problem);
console.log(`${others.length} dependencies, ${problems.length} problems`);
process.exit(problems.length === 0 ? 0 : 1);
