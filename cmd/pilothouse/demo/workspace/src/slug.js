import { randomInt } from "node:crypto";

// Without characters that look alike on paper.
const ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz";

export function newSlug(length) {
  let slug = "";
  while (slug.length < length) slug += ALPHABET[randomInt(ALPHABET.length)];
  return slug;
}

export function isSlug(text) {
  return text !== "" && [...text].every((c) => ALPHABET.includes(c));
}
