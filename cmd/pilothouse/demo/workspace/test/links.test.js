import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Links } from "../src/links.js";

test("links survive a restart", () => {
  const settings = {
    dataFile: join(mkdtempSync(join(tmpdir(), "links-")), "links.json"),
    slugLength: 6,
  };
  const { slug } = new Links(settings).add("https://example.org/");
  assert.equal(new Links(settings).get(slug).target, "https://example.org/");
});
