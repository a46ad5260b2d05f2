import { randomUUID } from "node:crypto";
import { type Backend, Problem } from "./backend.ts";
import type { CallEvent, CallInfo, CallRequest } from "./wire.ts";

const RETURN_ATTEMPTS = 5; // streams that break off without an event before a call is given up

/** The id of a new call. Those of tool calls would not do: some providers use them again and again. */
export function newCallID(): string {
	return `pi-${randomUUID()}`;
}

/** Whoever is told of a call while it runs. */
export interface Watcher {
	event(event: CallEvent): void;
	/** The daemon has given no sign of life for so many ms; 0 tells that it does. */
	silence(ms: number): void;
	/** How many ms of that are borne. */
	bears: number;
}

/**
 * Runs a call and returns its last event, over the death of the daemon if need be. The
 * signal cancels the call; its result, with what its lanes came to, is still awaited.
 */
export async function run(backend: Backend, request: CallRequest, watcher: Watcher, signal: AbortSignal | undefined): Promise<CallEvent> {
	const patience = new AbortController();
	const over = new AbortController();
	void backend.listen((ms) => {
		watcher.silence(ms);
		if (ms > watcher.bears) patience.abort(backend.silent());
	}, over.signal);
	let timer: NodeJS.Timeout | undefined;
	const cancel = () => {
		const unended = new Error("the call was cancelled; the daemon is still ending its lanes");
		timer ??= setTimeout(() => patience.abort(unended), backend.patience.cancel);
		const reason = encodeURIComponent("the Pi session was aborted");
		// A call that is not known yet is cancelled when it is; see below.
		backend.ask("DELETE", `/v1/calls/${request.id}?reason=${reason}`).catch(() => undefined);
	};
	signal?.addEventListener("abort", cancel);
	try {
		let from = 0;
		for (let attempt = 0; attempt < RETURN_ATTEMPTS; attempt++) {
			try {
				for await (const event of backend.lines<CallEvent>("POST", `/v1/calls?from=${from}`, request, patience.signal)) {
					attempt = 0;
					from = event.seq + 1;
					if (last(event)) return event;
					if (event.type === "accepted" && signal?.aborted) cancel();
					watcher.event(event);
				}
			} catch (error) {
				patience.signal.throwIfAborted();
				if (error instanceof Problem) throw error;
			}
			await backend.ready(); // throws when there is no daemon to ask
		}
		throw new Error("the pilothouse daemon breaks off each time it is asked; its log says why");
	} finally {
		over.abort();
		clearTimeout(timer);
		signal?.removeEventListener("abort", cancel);
	}
}

/** Follows a call that runs or waits to its last event. The signal ends the following, not the call. */
export async function rejoin(backend: Backend, id: string, leaving: AbortSignal): Promise<CallEvent> {
	for await (const event of backend.lines<CallEvent>("GET", `/v1/calls/${id}/events`, undefined, leaving)) {
		if (last(event)) return event;
	}
	throw new Error("the pilothouse daemon ended");
}

/** Lists the calls of a session whose results nobody has taken yet. */
export async function waiting(backend: Backend, sessionID: string): Promise<CallInfo[]> {
	const { calls } = await backend.ask<{ calls: CallInfo[] }>("GET", `/v1/calls?session=${encodeURIComponent(sessionID)}`);
	return calls;
}

/** Tells the daemon that a result has arrived and need not be kept. */
export async function acknowledge(backend: Backend, id: string): Promise<void> {
	try {
		await backend.ask("POST", `/v1/calls/${id}/ack`, undefined, undefined, backend.patience.hook);
	} catch {
		// It is kept, and offered again when the session is opened the next time.
	}
}

/** Tells that nothing follows an event. */
function last(event: CallEvent): boolean {
	return event.type === "result" || event.type === "problem";
}
