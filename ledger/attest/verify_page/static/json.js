// JSON, strictly: bounded size and depth, whole numbers, no key twice; and its canonical bytes (RFC 8785, narrowed).
// Objects have no prototype, so that a key called __proto__ is a key like any other.

import { equal, utf8 } from "./bytes.js";
import { BadInput } from "./refusal.js";

const MAX_DEPTH = 64;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
// Without escapes and controls, which most texts are.
const PLAIN = /"([^"\\\u0000-\u001f]*)"/y;
const TEXT = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const SPACE = /[ \t\n\r]*/y;
const WORDS = new Map([
  ["true", true],
  ["false", false],
  ["null", null],
]);

/** The value of a file's bytes; throws BadInput. White space and the order of keys are free. */
export function parseJson(data, maxBytes) {
  if (data.length > maxBytes) throw new BadInput(`the document has ${data.length} bytes; at most ${maxBytes} are read`);
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
  } catch {
    throw new BadInput("not UTF-8 JSON");
  }
  return new Reader(text).document();
}

/** The value of bytes that must already be the canonical ones; throws BadInput. */
export function parseCanonical(data, maxBytes) {
  const value = parseJson(data, maxBytes);
  if (!equal(canonicalBytes(value), data)) {
    throw new BadInput("the document is not in canonical form (RFC 8785): re-encode it before signing or sending");
  }
  return value;
}

/** The RFC 8785 bytes of a value that `parseJson` gives, or that is made of such values. */
export function canonicalBytes(value) {
  const parts = [];
  write(value, parts);
  return utf8(parts.join(""));
}

/** Whether two values have the same canonical bytes. */
export function same(left, right) {
  return equal(canonicalBytes(left), canonicalBytes(right));
}

/** An object without one of its members. */
export function without(object, member) {
  return Object.fromEntries(Object.entries(object).filter(([key]) => key !== member));
}

function write(value, parts) {
  if (value === null || typeof value === "boolean") {
    parts.push(String(value));
  } else if (typeof value === "number") {
    if (!Number.isSafeInteger(value) || Object.is(value, -0)) throw new RangeError(`${value} has no canonical form`);
    parts.push(String(value));
  } else if (typeof value === "string") {
    if (!value.isWellFormed()) throw new RangeError("a lone surrogate is not text");
    parts.push(JSON.stringify(value));
  } else if (Array.isArray(value)) {
    parts.push("[");
    value.forEach((item, at) => {
      if (at) parts.push(",");
      write(item, parts);
    });
    parts.push("]");
  } else if (typeof value === "object") {
    parts.push("{");
    // The order of UTF-16 units, as RFC 8785 has it.
    Object.keys(value)
      .sort()
      .forEach((key, at) => {
        if (at) parts.push(",");
        write(key, parts);
        parts.push(":");
        write(value[key], parts);
      });
    parts.push("}");
  } else {
    throw new RangeError(`${typeof value} has no canonical form`);
  }
}

class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  document() {
    const value = this.value(0);
    this.match(SPACE);
    if (this.at < this.text.length) throw this.bad("more follows the document");
    return value;
  }

  bad(why) {
    return new BadInput(`not JSON at character ${this.at}: ${why}`);
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found) this.at = pattern.lastIndex;
    return found;
  }

  /** Whether this character comes next, after white space; it is passed. */
  next(character) {
    this.match(SPACE);
    if (this.text[this.at] !== character) return false;
    this.at += 1;
    return true;
  }

  value(depth) {
    if (depth > MAX_DEPTH) throw new BadInput(`nested deeper than ${MAX_DEPTH} levels`);
    if (this.next("{")) return this.object(depth);
    if (this.next("[")) return this.list(depth);
    if (this.text[this.at] === '"') return this.string();
    for (const [word, value] of WORDS) {
      if (!this.text.startsWith(word, this.at)) continue;
      this.at += word.length;
      return value;
    }
    return this.number();
  }

  object(depth) {
    const found = Object.create(null);
    if (this.next("}")) return found;
    do {
      this.match(SPACE);
      const key = this.string();
      if (key in found) throw new BadInput(`the key ${JSON.stringify(key.slice(0, 80))} stands twice in one object`);
      if (!this.next(":")) throw this.bad("a colon is missing");
      found[key] = this.value(depth + 1);
    } while (this.next(","));
    if (!this.next("}")) throw this.bad("an object has no end");
    return found;
  }

  list(depth) {
    const found = [];
    if (this.next("]")) return found;
    do found.push(this.value(depth + 1));
    while (this.next(","));
    if (!this.next("]")) throw this.bad("a list has no end");
    return found;
  }

  string() {
    const plain = this.match(PLAIN);
    const text = plain ? plain[1] : JSON.parse(this.match(TEXT)?.[0] ?? this.refuse("a text is missing"));
    if (!text.isWellFormed()) throw new BadInput("a lone surrogate is not text");
    return text;
  }

  number() {
    const text = this.match(NUMBER)?.[0] ?? this.refuse("a value is missing");
    if (!/^-?[0-9]+$/.test(text)) {
      throw new BadInput(`the number ${text.slice(0, 40)} is not an integer; write it as a decimal string`);
    }
    if (text === "-0") throw new BadInput("-0 has no canonical form; write 0");
    if (!Number.isSafeInteger(Number(text))) {
      throw new BadInput(`the number ${text.slice(0, 20)} is beyond 2^53; write it as a decimal string`);
    }
    return Number(text);
  }

  refuse(why) {
    throw this.bad(why);
  }
}
