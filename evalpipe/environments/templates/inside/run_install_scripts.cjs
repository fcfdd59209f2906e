// Runs the install scripts of the packages below ./node_modules that have any, each by itself: one that wants what
// cannot be had, such as a browser, costs the others nothing.
"use strict";
const { spawnSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");

function packages(folder) {
  const found = [];
  for (const entry of fs.existsSync(folder) ? fs.readdirSync(folder, { withFileTypes: true }) : []) {
    // A link is a package of the project itself; its scripts build the project, which is for the tests to ask.
    if (!entry.isDirectory() || entry.name.startsWith(".")) continue;
    const place = path.join(folder, entry.name);
    if (entry.name.startsWith("@")) found.push(...packages(place));
    else found.push(place, ...packages(path.join(place, "node_modules")));
  }
  return found;
}

function hasInstallScript(folder) {
  try {
    const scripts = JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8")).scripts ?? {};
    return ["preinstall", "install", "postinstall"].some((name) => name in scripts)
      || (fs.existsSync(path.join(folder, "binding.gyp")) && !("install" in scripts));
  } catch {
    return false;
  }
}

for (const folder of packages("node_modules").filter(hasInstallScript)) {
  const name = folder.slice(folder.lastIndexOf("node_modules/") + "node_modules/".length);
  const done = spawnSync("npm", ["rebuild", "--ignore-scripts=false", "--foreground-scripts", name], { encoding: "utf8" });
  console.log(`evalpipe: install scripts of ${name}: ${done.status === 0 ? "done" : "failed; going on without"}`);
  if (done.status !== 0) console.log((done.stdout + done.stderr).split("\n").slice(-5).join("\n"));
}
