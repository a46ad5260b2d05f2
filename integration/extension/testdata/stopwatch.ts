/** Times in ms, by hook, in the order in which they were taken. */
type Times = Record<string, number[]>;

// Pi loads each extension with modules of its own, so what they share is global.
const shared = globalThis as { began?: Record<string, number>; times?: Times };

export function begin(hook: string): void {
	shared.began ??= {};
	shared.began[hook] = performance.now();
}

export function end(hook: string): void {
	shared.times ??= {};
	shared.times[hook] ??= [];
	shared.times[hook].push(performance.now() - (shared.began?.[hook] ?? Number.NaN));
}

/** What was measured since the last time. */
export function took(): Times {
	const times = shared.times ?? {};
	shared.times = {};
	return times;
}
