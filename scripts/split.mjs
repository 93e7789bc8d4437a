// Splits a WebAssembly module in two: what a first answer runs, and what is fetched after it. The second module shares the
// memory, the table and the globals of the first. Where the first calls a function of the second, it has a stub that goes
// through the table, and that has the second loaded first if it is not there yet.

/** The instructions with one number behind them, with none, and with a function's. Others are read one by one. */
const U32 = [0x0c, 0x0d, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x3f, 0x40];
const SIGNED = [0x02, 0x03, 0x04, 0x41, 0x42, 0xd0];
const PLAIN = [0x00, 0x01, 0x05, 0x0b, 0x0f, 0x1a, 0x1b, 0xd1];
const CALLS = [0x10, 0x12, 0xd2];
const [GET_LOCAL, GET_GLOBAL, SET_GLOBAL, CALL, CALL_INDIRECT] = [0x20, 0x23, 0x24, 0x10, 0x11];
const [CONST, IS_ZERO, IF, END, NOTHING] = [0x41, 0x45, 0x04, 0x0b, 0x40];
/** A global that is a number, may change, and is 0. */
const FLAG = [0x7f, 1, CONST, 0, END];
/** The order of sections in a module. */
const ORDER = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11];
/** How the exports of a counted module begin. */
export const MARK = "ran-";

class Reader {
  constructor(bytes, at = 0, end = bytes.length) {
    Object.assign(this, { bytes, at, end });
  }
  byte() {
    return this.bytes[this.at++];
  }
  u32() {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.byte();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  }
  /** Steps over a number of any length. */
  leb() {
    while (this.byte() >= 0x80);
  }
  name() {
    const length = this.u32();
    this.at += length;
    return new TextDecoder().decode(this.bytes.subarray(this.at - length, this.at));
  }
  list(item) {
    return Array.from({ length: this.u32() }, item);
  }
  /** The bytes that `read` steps over. */
  span(read) {
    const start = this.at;
    read();
    return this.bytes.subarray(start, this.at);
  }
}

const u32 = (value) => {
  const bytes = [];
  for (; value >= 0x80; value = Math.floor(value / 128)) bytes.push((value % 128) | 0x80);
  return [...bytes, value];
};
/** As a signed number, for `i32.const`. */
const s32 = (value) => {
  const bytes = u32(value);
  if (bytes.at(-1) & 0x40) bytes.push(bytes.pop() | 0x80, 0);
  return bytes;
};
const text = (value) => {
  const bytes = [...new TextEncoder().encode(value)];
  return [...u32(bytes.length), ...bytes];
};
const joined = (parts) => Buffer.concat(parts.map((part) => (part instanceof Uint8Array ? part : Uint8Array.from(part))));
const list = (items) => joined([u32(items.length), ...items]);
const sized = (bytes) => joined([u32(bytes.length), bytes]);
const section = (id, bytes) => joined([[id], sized(bytes)]);
const HEAD = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);

/** Steps over one instruction; where it names a function, tells `called` where that index stands. */
function step(reader, called) {
  const code = reader.byte();
  if (CALLS.includes(code)) {
    const start = reader.at;
    called(reader.u32(), start, reader.at);
  } else if ((code >= 0x45 && code <= 0xc4) || PLAIN.includes(code)) return;
  else if (U32.includes(code) || SIGNED.includes(code)) reader.leb();
  else if (code >= 0x28 && code <= 0x3e) {
    // An alignment and an offset: more than one memory would put a third number between them.
    if (reader.u32() >= 64) throw new Error("several memories");
    reader.leb();
  } else if (code === CALL_INDIRECT || code === 0x13) reader.leb(), reader.leb();
  else if (code === 0x0e) reader.list(() => reader.leb()), reader.leb();
  else if (code === 0x1c) reader.list(() => reader.byte());
  else if (code === 0x43) reader.at += 4;
  else if (code === 0x44) reader.at += 8;
  else if (code === 0xfc) {
    const more = reader.u32();
    const numbers = { 10: 2, 11: 1, 15: 1, 16: 1, 17: 1, 14: 2 }[more] ?? (more < 8 ? 0 : NaN);
    if (Number.isNaN(numbers)) throw new Error(`instruction 0xfc ${more}: expected none on segments`);
    for (let at = 0; at < numbers; at += 1) reader.leb();
  } else throw new Error(`instruction 0x${code.toString(16)} at ${reader.at}: not known here`);
}

/** The parts of a module that matter here. */
function parse(bytes) {
  const sections = new Map();
  const contents = new Map();
  const whole = new Reader(bytes, HEAD.length);
  while (whole.at < whole.end) {
    const id = whole.byte();
    const length = whole.u32();
    const reader = new Reader(bytes, whole.at, whole.at + length);
    whole.at += length;
    contents.set(id, bytes.subarray(reader.at, reader.end));
    // What is under no number is for tools.
    if (id !== 0) sections.set(id, reader);
  }
  const read = (id, item) => {
    const reader = sections.get(id);
    return reader ? reader.list(() => item(reader)) : [];
  };
  const types = read(1, (it) => {
    if (it.byte() !== 0x60) throw new Error("expected types of functions");
    return { parameters: it.list(() => it.byte()), results: it.list(() => it.byte()) };
  });
  const limits = (it) => {
    const most = it.byte();
    return { least: it.u32(), most: most & 1 ? it.u32() : undefined };
  };
  const imports = read(2, (it) => {
    const [module, name, kind] = [it.name(), it.name(), it.byte()];
    if (kind !== 0) throw new Error(`${module}.${name}: expected imports of functions`);
    return { module, name, type: it.u32() };
  });
  const own = read(3, (it) => it.u32());
  const tables = read(4, (it) => ({ type: it.byte(), limits: limits(it) }));
  const memories = read(5, limits);
  const globals = read(6, (it) => ({ type: it.span(() => (it.at += 2)), value: it.span(() => expression(it)) }));
  const exports = read(7, (it) => ({ name: it.name(), kind: it.byte(), at: it.u32() }));
  const start = sections.get(8)?.u32();
  const elements = read(9, (it) => {
    const kind = it.u32();
    if (kind !== 0 && kind !== 2) throw new Error(`a segment of a table of kind ${kind}: expected functions`);
    const table = kind === 2 ? it.u32() : 0;
    const offset = it.span(() => expression(it));
    if (kind === 2) it.byte();
    return { table, offset, functions: it.list(() => it.u32()) };
  });
  const bodies = read(10, (it) => {
    const length = it.u32();
    it.at += length;
    return new Reader(bytes, it.at - length, it.at);
  });
  return { types, imports, own, tables, memories, globals, exports, start, elements, bodies, contents };
}

/** Steps over a constant expression. */
function expression(reader) {
  while (reader.bytes[reader.at] !== END) step(reader, () => {});
  reader.at += 1;
}

/** Where a body calls functions: `[function, start, end]` of each. */
function calls({ bytes, at, end }) {
  const reader = new Reader(bytes, at, end);
  reader.list(() => (reader.u32(), reader.byte()));
  const found = [];
  while (reader.at < end) step(reader, (...call) => found.push(call));
  return found;
}

/** A body that calls the same functions under other numbers. */
function renumbered(body, found, number) {
  const parts = [];
  let from = body.at;
  for (const [callee, start, end] of found) {
    parts.push(body.bytes.subarray(from, start), u32(number(callee)));
    from = end;
  }
  return joined([...parts, body.bytes.subarray(from, body.end)]);
}

/** The same module with a global for each of its functions, which the function sets to 1 where it runs: `MARK` and a number. */
export function counted(bytes) {
  const module = parse(bytes);
  const flags = module.globals.length;
  const bodies = module.bodies.map((body, at) => {
    const reader = new Reader(body.bytes, body.at, body.end);
    const locals = reader.span(() => reader.list(() => (reader.u32(), reader.byte())));
    return sized(joined([locals, [CONST, 1, SET_GLOBAL, ...u32(flags + at)], body.bytes.subarray(reader.at, body.end)]));
  });
  const globals = list([...module.globals.map((it) => joined([it.type, it.value])), ...bodies.map(() => FLAG)]);
  const given = module.exports.map((it) => [...text(it.name), it.kind, ...u32(it.at)]);
  const exports = list([...given, ...bodies.map((_, at) => [...text(`${MARK}${at}`), 3, ...u32(flags + at)])]);
  const changed = new Map([[6, globals], [7, exports], [10, list(bodies)]]);
  const sections = ORDER.filter((id) => module.contents.has(id));
  return joined([HEAD, ...sections.map((id) => section(id, changed.get(id) ?? module.contents.get(id)))]);
}

/**
 * The two modules, where the first has the functions whose numbers are in `soon`. A name that both share says that they
 * are of one build.
 * @returns {{first: Uint8Array, later: Uint8Array}}
 */
export function split(bytes, soon, build) {
  const module = parse(bytes);
  const { types, imports, own, tables, memories, globals, elements } = module;
  const outside = imports.length;
  const typeOf = (at) => (at < outside ? imports[at].type : own[at - outside]);
  const found = module.bodies.map(calls);
  const pointed = new Set([...elements.flatMap((it) => it.functions), ...(module.start === undefined ? [] : [module.start])]);
  for (const { kind, at } of module.exports) if (kind === 0) pointed.add(at);

  const later = new Set();
  own.forEach((_, at) => {
    if (!soon.has(at)) later.add(at + outside);
  });
  // What each side calls of the other.
  const stubs = new Set([...later].filter((at) => pointed.has(at)));
  const shared = new Set();
  found.forEach((all, at) => {
    for (const [callee] of all) {
      if (later.has(callee) && !later.has(at + outside)) stubs.add(callee);
      if (!later.has(callee) && later.has(at + outside)) shared.add(callee);
    }
  });
  const order = (set) => [...set].sort((a, b) => a - b);
  const [slots, names] = [order(stubs), new Map(order(shared).map((at, n) => [at, `f${n.toString(36)}`]))];

  const main = tables.findIndex((it) => it.type === 0x70);
  const base = tables[main].limits.least;
  const nothing = types.findIndex((it) => it.parameters.length + it.results.length === 0);
  if (nothing < 0) throw new Error("expected a type of functions without parameters");
  const flag = globals.length;

  const first = () => {
    const kept = own.map((_, at) => at + outside).filter((at) => !later.has(at) || stubs.has(at));
    // One more import, and one more function that calls it where the second module is missing.
    const ensure = outside + 1 + kept.length;
    const numbers = new Map(kept.map((at, n) => [at, outside + 1 + n]));
    const number = (at) => (at < outside ? at : numbers.get(at));
    const stub = (at) => {
      const forwarded = types[typeOf(at)].parameters.flatMap((_, n) => [GET_LOCAL, ...u32(n)]);
      const through = [CONST, ...s32(base + slots.indexOf(at)), CALL_INDIRECT, ...u32(typeOf(at)), ...u32(main)];
      return [0, CALL, ...u32(ensure), ...forwarded, ...through, END];
    };
    const bodies = kept.map((at) => (later.has(at) ? stub(at) : renumbered(module.bodies[at - outside], found[at - outside], number)));
    bodies.push([0, GET_GLOBAL, ...u32(flag), IS_ZERO, IF, NOTHING, CALL, ...u32(outside), END, END]);
    const taken = new Set(module.exports.map((it) => it.name));
    const give = (name, kind, at) => {
      if (taken.has(name)) throw new Error(`the export ${name} is there already`);
      return [...text(name), kind, ...u32(at)];
    };
    const exported = [
      ...module.exports.map((it) => [...text(it.name), it.kind, ...u32(it.kind === 0 ? number(it.at) : it.at)]),
      ...[...names].map(([at, name]) => give(name, 0, number(at))),
      ...tables.map((_, at) => give(`t${at}`, 1, at)),
      give("m0", 2, 0),
      ...globals.map((_, at) => give(`g${at}`, 3, at)),
      give("joined", 3, flag),
    ];
    const range = ({ least, most }, more = 0) => [most === undefined ? 0 : 1, ...u32(least + more), ...(most === undefined ? [] : u32(most + more))];
    return [
      section(1, module.contents.get(1)),
      section(2, list([...imports.map((it) => [...text(it.module), ...text(it.name), 0, ...u32(it.type)]), [...text("later"), ...text("load"), 0, ...u32(nothing)]])),
      section(3, list([...kept.map((at) => u32(typeOf(at))), u32(nothing)])),
      section(4, list(tables.map((it, at) => [it.type, ...range(it.limits, at === main ? slots.length : 0)]))),
      section(5, list(memories.map((it) => range(it)))),
      section(6, list([...globals.map((it) => joined([it.type, it.value])), FLAG])),
      section(7, list(exported)),
      ...(module.start === undefined ? [] : [section(8, Uint8Array.from(u32(number(module.start))))]),
      section(9, list(elements.map((it) => joined([it.table === 0 ? [0] : [2, ...u32(it.table)], it.offset, it.table === 0 ? [] : [0], list(it.functions.map((at) => u32(number(at))))])))),
      ...(module.contents.has(12) ? [section(12, module.contents.get(12))] : []),
      section(10, list(bodies.map((body) => sized(body)))),
      section(11, module.contents.get(11)),
    ];
  };

  const second = () => {
    const moved = order(later);
    const taken = [...names];
    const numbers = new Map([...taken.map(([at], n) => [at, n]), ...moved.map((at, n) => [at, taken.length + n])]);
    const from = (name, ...what) => [...text(build), ...text(name), ...what];
    const imported = [
      ...taken.map(([at, name]) => from(name, 0, ...u32(typeOf(at)))),
      ...tables.map((it, at) => from(`t${at}`, 1, it.type, 0, 0)),
      from("m0", 2, 0, 0),
      ...globals.map((it, at) => from(`g${at}`, 3, ...it.type)),
    ];
    const offset = [CONST, ...s32(base), END];
    const placed = list(slots.map((at) => u32(numbers.get(at))));
    return [
      section(1, module.contents.get(1)),
      section(2, list(imported)),
      section(3, list(moved.map((at) => u32(typeOf(at))))),
      section(9, list([joined([main === 0 ? [0] : [2, ...u32(main)], offset, main === 0 ? [] : [0], placed])])),
      section(10, list(moved.map((at) => sized(renumbered(module.bodies[at - outside], found[at - outside], (callee) => numbers.get(callee)))))),
    ];
  };
  return { first: joined([HEAD, ...first()]), later: joined([HEAD, ...second()]) };
}
