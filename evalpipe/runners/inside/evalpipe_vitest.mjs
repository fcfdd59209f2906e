// Vitest's reporter inside the sandbox, for Vitest 1 or newer: see evalpipe_report.cjs. It runs in Vitest's own process,
// the tests in its workers.

import reports from "./evalpipe_report.cjs";

const { Report, messageOf } = reports;

export default class {
  #report = new Report();
  #ended = false;

  // Vitest 3 and newer call the one, older ones the other, and some call both.
  onTestRunEnd(modules, errors) {
    this.#end(modules.map((module) => module.task), errors);
  }

  onFinished(files, errors) {
    this.#end(files, errors);
  }

  #end(files, errors) {
    if (this.#ended) return;
    this.#ended = true;
    for (const file of files) {
      const outside = errors.filter((error) => isPathOf(error.VITEST_TEST_PATH, file.filepath));
      // One file may be of several projects, and its tests then run in each.
      const project = file.projectName ? [`|${file.projectName}|`] : [];
      if (file.tasks.length) this.#group(file.filepath, project, file, outside);
      else this.#report.uncollected(file.filepath, messages([...(file.result?.errors ?? []), ...outside]));
    }
    this.#report.end();
  }

  /** A file or a group of tests, with the errors of its own hooks and of all that is around it. */
  #group(file, titles, group, around) {
    const errors = [...around, ...(group.result?.errors ?? [])];
    // After a hook before all of them failed, Vitest calls them skipped.
    const hidden = errors.length > 0 && !hasRun(group);
    for (const task of group.tasks) {
      const path = [...titles, task.name];
      if (task.type === "suite") this.#group(file, path, task, errors);
      else this.#test(file, path, task, errors, hidden);
    }
  }

  #test(file, titles, task, around, hidden) {
    const { state, duration, errors, retryCount } = task.result ?? {};
    const ended = state === "pass" || state === "fail";
    if (state === "pass") this.#report.test(file, titles, task.fails ? "xfailed" : "passed", duration, "");
    else if (state === "fail") this.#report.test(file, titles, "failed", duration, messages(errors));
    else if (task.mode !== "run" && !hidden) this.#report.test(file, titles, "skipped", 0, "");
    else this.#report.fault(file, titles, "error", messages(around) || "it was begun and never ended");
    if (ended && around.length) this.#report.fault(file, titles, "error", messages(around));
    if (state === "pass" && retryCount) {
      this.#report.fault(file, titles, "failed", "it passed only when it was tried again");
    }
  }
}

/** Whether a path is that of a file, which older versions give from the top of its project. */
function isPathOf(path, file) {
  return path === file || (path !== undefined && file.endsWith(`/${path}`));
}

function hasRun(task) {
  return task.tasks ? task.tasks.some(hasRun) : ["pass", "fail"].includes(task.result?.state);
}

function messages(errors) {
  return (errors ?? []).map(messageOf).join("\n");
}
