// The reporter of node's own runner inside the sandbox, for Node 20 or newer: see evalpipe_report.cjs. It runs in the
// process that starts one process for each test file.

import path from "node:path";
import reports from "./evalpipe_report.cjs";

const { Report, messageOf } = reports;

// What a group has besides the failures of its tests: a hook for all of them, or the code around them.
const OWN_FAILURES = new Set(["hookFailed", "testCodeFailure", "uncaughtException", "unhandledRejection"]);
const STDERR_CHARACTERS = 10_000;

class Reader {
  #report = new Report();
  // Titles of the groups and tests that are open, and the tests reported within each so far.
  #titles = [];
  #reported = [[]];
  #stderr = new Map();

  read({ type, data }) {
    if (type === "test:stderr") this.#noise(data);
    else if (type === "test:start") this.#open(data);
    else if (type === "test:pass" || type === "test:fail") this.#close(data, type === "test:pass");
  }

  end() {
    this.#report.end();
  }

  #noise({ file, message }) {
    this.#stderr.set(file, ((this.#stderr.get(file) ?? "") + message).slice(-STDERR_CHARACTERS));
  }

  #open({ nesting, name, file }) {
    this.#titles.length = nesting;
    this.#titles.push(name);
    this.#reported.length = nesting + 1;
    this.#reported.push([]);
    if (nesting === 0) this.#reported[0] = this.#reported[0].filter((one) => one.file === file);
  }

  #close(data, passed) {
    const { file, nesting, details } = data;
    const titles = [...this.#titles.slice(0, nesting), data.name];
    const inside = this.#reported[nesting + 1] ?? [];
    const { error } = details;
    if (nesting === 0 && path.resolve(data.name) === file) this.#fileEnded(file, passed, error);
    else if (details.type !== "suite") {
      const outcome = outcomeOf(data, passed);
      this.#report.test(file, titles, outcome, details.duration_ms, passed ? "" : reason(error));
      inside.push({ file, titles, outcome });
    } else if (!passed && OWN_FAILURES.has(error.failureType)) {
      this.#blame(file, inside, reason(error));
    }
    this.#reported[nesting].push(...inside);
  }

  /** What node says of a whole file only if its process failed, or left no test at all, which is no test either. */
  #fileEnded(file, passed, error) {
    const known = this.#reported[0].filter((one) => one.file === file);
    if (!passed) this.#blame(file, known, `${reason(error)}\n${this.#stderr.get(file) ?? ""}`);
  }

  /** A group or file failed besides its tests: in a hook of all of them, or before there was any. */
  #blame(file, tests, message) {
    if (!tests.length) this.#report.uncollected(file, message);
    for (const one of tests) {
      if (one.outcome !== "skipped") this.#report.fault(one.file, one.titles, "error", message);
    }
  }
}

function outcomeOf({ skip, todo }, passed) {
  if (skip) return "skipped";
  if (todo) return passed ? "xpassed" : "xfailed";
  return passed ? "passed" : "failed";
}

function reason(error) {
  return messageOf(error?.cause ?? error);
}

export default async function* (source) {
  const reader = new Reader();
  for await (const event of source) reader.read(event);
  reader.end();
  yield "";
}
