/** How long a Pi session waits for the daemon, in ms. */
export interface Patience {
	/** The answer to a hook. */
	hook: number;
	/** A daemon may take as long to say who it is; it does nothing else for it. */
	health: number;
	/** An answer that needs no person. */
	answer: number;
	/** The summary for a compaction. */
	compaction: number;
	/** The end of a session may wait as long. */
	farewell: number;
	/** The end of the lanes of a cancelled call. */
	cancel: number;
	/** A session waits as long for a round whose daemon gives no sign of life. */
	round: number;
}

const DEFAULT = 10; // s

/**
 * The patience of this process: $PILOTHOUSE_PATIENCE, in seconds, names another time for
 * the answer to a hook, and all others keep their proportion to it.
 */
export function patienceOf(environ: NodeJS.ProcessEnv): Patience {
	const seconds = Number(environ.PILOTHOUSE_PATIENCE);
	const hook = 1000 * (seconds > 0 ? seconds : DEFAULT);
	return {
		hook,
		health: 0.5 * hook,
		answer: 6 * hook,
		compaction: 6 * hook,
		farewell: 0.3 * hook,
		cancel: 2 * hook,
		round: 3 * hook,
	};
}
