// TtlMap is a map whose entries end. An entry without a lifetime stays.
export class TtlMap {
  #entries = new Map();
  #now;

  // now can be replaced, so that tests need not wait.
  constructor(now = Date.now) {
    this.#now = now;
  }

  set(key, value, ttlMs = Infinity) {
    this.#entries.set(key, { value, endsAt: this.#now() + ttlMs });
  }

  // get checks the time itself: the sweep saves memory and decides nothing.
  get(key) {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.endsAt <= this.#now()) return undefined;
    return entry.value;
  }

  // sweep looks at every entry.
  sweep() {
    for (const [key, entry] of this.#entries) {
      if (entry.endsAt <= this.#now()) this.#entries.delete(key);
    }
  }
}
