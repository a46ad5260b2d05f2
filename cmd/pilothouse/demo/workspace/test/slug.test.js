import assert from "node:assert/strict";
import { test } from "node:test";
import { isSlug, newSlug } from "../src/slug.js";

test("a new slug has the length that was asked for", () => {
  assert.equal(newSlug(6).length, 6);
});

test("a slug has no characters that look alike", () => {
  assert.ok(isSlug(newSlug(200)));
  assert.ok(!isSlug("l0st"));
});
