"use strict";
// Writes what a JavaScript test tool says as the sealed JSON lines that `evalpipe/runners/json_lines.py` reads.
//
// Part of the reporters that run inside the sandbox, for Node 18 or newer. The key is gone from the disk as soon as it
// is read. Everything is written at the end of the run, when no test has the file system in its hands; a run that dies
// has no report in any case.

const { createHash } = require("node:crypto");
const fs = require("node:fs");
const path = require("node:path");

// Tests put something else in the place of what node offers; what is kept here stays.
const { writeSync } = fs;
const { stringify } = JSON;
const MESSAGE_CHARACTERS = 4000;
const COLORS = /\x1b\[[0-9;]*m/g;
const BLOCK_BYTES = 64; // of SHA-256
const SETTINGS = path.join(__dirname, "settings.json");

/** HMAC-SHA-256 over all that has been added so far, which node's own cannot give without coming to its end. */
class Chain {
  constructor(key) {
    const padded = Buffer.alloc(BLOCK_BYTES);
    Buffer.from(key, "hex").copy(padded);
    const start = (pad) => createHash("sha256").update(padded.map((byte) => byte ^ pad));
    [this._inner, this._outer] = [start(0x36), start(0x5c)];
  }

  add(line) {
    this._inner.update(line);
    return this._outer.copy().update(this._inner.copy().digest()).digest("hex");
  }
}

class Report {
  #key;
  #file;
  #top = fs.realpathSync(process.cwd());
  #lines = [];

  constructor() {
    const { key, report, ...settings } = JSON.parse(fs.readFileSync(SETTINGS, "utf8"));
    fs.unlinkSync(SETTINGS);
    this.settings = settings;
    this.#key = key;
    this.#file = fs.openSync(report, "a");
  }

  /** One run of a test: `file` as the tool names it, `titles` from the outermost group to the test. */
  test(file, titles, outcome, milliseconds, message) {
    const seconds = Number.isFinite(milliseconds) ? milliseconds / 1000 : 0;
    const id = [this.place(file), ...titles.map(String)];
    this.#add({ kind: "test", id, outcome, seconds, message: text(message) });
  }

  /** What befell a test besides its run. */
  fault(file, titles, outcome, message) {
    this.#add({ kind: "fault", id: [this.place(file), ...titles.map(String)], outcome, message: text(message) });
  }

  /** A file of which no test is known, as it did not load. */
  uncollected(file, message) {
    this.#add({ kind: "uncollected", file: this.place(file), message: text(message) });
  }

  /** As text at once: a record could be changed as long as it is one. */
  #add(record) {
    this.#lines[this.#lines.length] = stringify(record) + "\n";
  }

  /** Write everything, and that the run came to its end. */
  end() {
    const chain = new Chain(this.#key);
    this.#add({ kind: "end" });
    for (const line of this.#lines) {
      const bytes = Buffer.from(`${chain.add(line)} ${line}`);
      for (let at = 0; at < bytes.length; ) at += writeSync(this.#file, bytes, at);
    }
  }

  /** The path of a file from the top of the repository. */
  place(file) {
    if (!path.isAbsolute(file)) return file;
    let real = file;
    try {
      real = fs.realpathSync(file);
    } catch {
      // It is gone, or only a name.
    }
    return path.relative(this.#top, real);
  }
}

function text(message) {
  const whole = String(message ?? "").replace(COLORS, "");
  if (whole.length <= MESSAGE_CHARACTERS) return whole;
  const half = MESSAGE_CHARACTERS / 2;
  return `${whole.slice(0, half)}\n[...]\n${whole.slice(-half)}`;
}

/** The text of whatever was thrown. Some tools give an error the stack of another place, without its message. */
function messageOf(error) {
  try {
    const message = String(error?.message ?? error ?? "");
    const stack = String(error?.stack ?? "");
    return stack.includes(message) ? stack : [message, stack].filter(Boolean).join("\n");
  } catch {
    return "an error that has no text";
  }
}

// Mocha's tests run in the process of its reporter.
Object.freeze(Report.prototype);

module.exports = { Report, messageOf };
