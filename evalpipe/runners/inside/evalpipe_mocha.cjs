"use strict";
// Mocha's reporter inside the sandbox, for Mocha 8 or newer: see evalpipe_report.cjs. It is given as `--require` too,
// because by itself Mocha runs nothing at all when one file does not load, and cannot run chosen files only.

const path = require("node:path");
const { Report, messageOf } = require("./evalpipe_report.cjs");

const report = new Report();
const { canary, canary_file: canaryFile, test_files: testFiles } = report.settings;

/** Load each file by itself: one that does not load is told, what it had defined by then is taken back. */
function loadEachByItself(Mocha) {
  const load = Mocha.prototype.loadFilesAsync;
  Mocha.prototype.loadFilesAsync = async function (...options) {
    const files = chosen(this.files, this.options.file ?? []);
    for (const file of files) {
      this.files = [file];
      const [suites, tests] = [new Set(this.suite.suites), new Set(this.suite.tests)];
      try {
        await load.apply(this, options);
      } catch (error) {
        report.uncollected(file, messageOf(error));
        this.suite.suites = this.suite.suites.filter((suite) => suites.has(suite));
        this.suite.tests = this.suite.tests.filter((test) => tests.has(test));
        // The interface may think that it is still inside of a group of that file: a new one does not.
        this.ui(this.options.ui);
      }
    }
    this.files = files;
  };
}

/** The files to load: those that Mocha found, or the chosen ones among them, and the canary after all others. */
function chosen(found, always) {
  const resolved = (files) => new Set(files.map((file) => path.resolve(file)));
  const wanted = testFiles && resolved([...testFiles, ...always]);
  const isCanary = (file) => path.basename(file).startsWith(`${canaryName()}.`);
  const files = found.filter((file) => !isCanary(file) && (!wanted || wanted.has(path.resolve(file))));
  // Where tests are compiled first, Mocha finds what the canary was compiled to.
  return [...files, found.find(isCanary) ?? path.resolve(canaryFile)];
}

function canaryName() {
  return path.basename(canaryFile).split(".")[0];
}

class Reporter {
  #seen = new Set();

  constructor(runner) {
    const [group] = runner.suite.suites.filter((suite) => suite.title === canary);
    // `.only` and `--grep` leave out every other test; the canary has to run all the same.
    if (group && runner.suite.hasOnly()) runner.suite.appendOnlySuite(group);
    runner.on("start", () => letThroughPattern(runner));
    runner.on("pass", (test) => this.#tell(test, "passed", ""));
    runner.on("pending", (test) => this.#tell(test, "skipped", ""));
    runner.on("retry", (test, error) => report.fault(fileOf(test), test.titlePath(), "failed", messageOf(error)));
    runner.on("fail", (runnable, error) => {
      if (runnable.type === "hook") this.#blame(runnable, messageOf(error));
      else if (runnable.type === "test") this.#tell(runnable, "failed", messageOf(error));
    });
    runner.on("end", () => report.end());
  }

  /** A test that calls back twice passes first and fails then: one run, of which the worse counts. */
  #tell(test, outcome, message) {
    if (this.#seen.has(test)) report.fault(fileOf(test), test.titlePath(), outcome, message);
    else report.test(fileOf(test), test.titlePath(), outcome, test.duration, message);
    this.#seen.add(test);
  }

  /** A hook that failed: Mocha runs no more of its group. One before or after all tests of the group is theirs alike. */
  #blame(hook, message) {
    const ofAll = /^"(?:before|after) all" hook/.test(hook.title);
    const current = ofAll ? undefined : hook.ctx?.currentTest;
    hook.parent.eachTest((test) => {
      const isMeant = ofAll || test === current || !this.#seen.has(test);
      if (isMeant && !test.isPending()) report.fault(fileOf(test), test.titlePath(), "error", message);
    });
  }
}

function letThroughPattern(runner) {
  const pattern = runner._grep;
  runner._grep = { test: (title) => (title.startsWith(`${canary} `) ? !runner._invert : pattern.test(title)) };
}

function fileOf(test) {
  for (let one = test; one; one = one.parent) if (one.file) return one.file;
  return "";
}

for (const { filename, exports } of Object.values(require.cache)) {
  if (filename.endsWith(path.join("lib", "mocha.js")) && exports.prototype?.loadFilesAsync) loadEachByItself(exports);
}

// Mocha looks for hooks in what a required file exports, and finds none in a class.
module.exports = Reporter;
