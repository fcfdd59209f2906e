"use strict";
// Jest's reporter inside the sandbox, for Jest 27 or newer: see evalpipe_report.cjs. It runs in Jest's own process, the
// tests in its workers.

const { Report } = require("./evalpipe_report.cjs");

const OUTCOMES = { passed: "passed", failed: "failed" }; // every other status is one of a test that was left out

module.exports = class {
  #report = new Report();

  onTestResult(test, result) {
    const file = result.testFilePath;
    // One file may be of several projects, and its tests then run in each.
    const project = name(test.context.config.displayName);
    const titlesOf = (one) => [...(project ? [`|${project}|`] : []), ...one.ancestorTitles, one.title];
    for (const one of result.testResults) {
      const titles = titlesOf(one);
      // Since Jest 30; an older one does not tell a test that is expected to fail from others.
      const outcome = one.failing && one.status === "passed" ? "xfailed" : OUTCOMES[one.status] ?? "skipped";
      this.#report.test(file, titles, outcome, one.duration, one.failureMessages.join("\n"));
      if (one.status === "passed" && one.invocations > 1) {
        this.#report.fault(file, titles, "failed", "it passed only when it was tried again");
      }
    }
    if (!result.testExecError) return;
    const message = result.testExecError.stack || result.testExecError.message || result.failureMessage;
    if (!result.testResults.length) this.#report.uncollected(file, message);
    // A hook after the last test, or an error outside of every test: Jest does not say whose it is.
    for (const one of result.testResults) this.#report.fault(file, titlesOf(one), "error", message);
  }

  onRunComplete(_contexts, results) {
    if (!results.wasInterrupted) this.#report.end();
  }
};

function name(displayName) {
  return typeof displayName === "object" && displayName !== null ? displayName.name : displayName;
}
