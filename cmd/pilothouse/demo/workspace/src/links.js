import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { newSlug } from "./slug.js";

// Links holds all links in memory and writes them to one file.
export class Links {
  #file;
  #slugLength;
  #bySlug = new Map();

  constructor({ dataFile, slugLength }) {
    this.#file = dataFile;
    this.#slugLength = slugLength;
    this.#load();
  }

  add(target) {
    let slug = newSlug(this.#slugLength);
    while (this.#bySlug.has(slug)) slug = newSlug(this.#slugLength);
    const link = { slug, target, createdAt: Date.now(), hits: 0 };
    this.#bySlug.set(slug, link);
    this.#save();
    return link;
  }

  get(slug) {
    return this.#bySlug.get(slug);
  }

  remove(slug) {
    const known = this.#bySlug.delete(slug);
    if (known) this.#save();
    return known;
  }

  #load() {
    let text;
    try {
      text = readFileSync(this.#file, "utf8");
    } catch (error) {
      if (error.code === "ENOENT") return;
      throw error;
    }
    for (const link of JSON.parse(text)) this.#bySlug.set(link.slug, link);
  }

  // The file is replaced as a whole; there is no earlier copy.
  #save() {
    mkdirSync(dirname(this.#file), { recursive: true });
    writeFileSync(this.#file + ".new", JSON.stringify([...this.#bySlug.values()]));
    renameSync(this.#file + ".new", this.#file);
  }
}
