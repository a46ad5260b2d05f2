import type { CallEvent, LaneResult, PlannedLane, Progress, Started } from "./wire.ts";

/** A lane as it is seen from a session: planned, at work or ended. */
export interface Lane {
	planned: PlannedLane;
	progress?: Progress;
	seen?: number; // when progress came, on the monotonic clock
	result?: LaneResult;
}

/** A round as its events tell of it. */
export class Round {
	readonly call: string;
	started: Started | undefined;
	readonly lanes = new Map<string, Lane>();
	private began = 0; // on the monotonic clock
	private silent = false; // its daemon gives no sign of life

	constructor(call: string) {
		this.call = call;
	}

	/** Takes over for how many ms the daemon has been silent, and tells whether that is news. */
	hear(silence: number): boolean {
		const silent = silence > 0;
		const news = silent !== this.silent;
		this.silent = silent;
		return news;
	}

	/** Takes an event over and tells whether it changes more than numbers. */
	take(event: CallEvent): boolean {
		if (event.started) {
			this.started = event.started;
			this.began = performance.now();
			for (const planned of event.started.lanes) {
				if (!event.started.reused?.includes(planned.laneId)) this.lanes.set(planned.laneId, { planned });
			}
			return true;
		}
		const id = event.progress?.laneId ?? event.lane?.laneId ?? "";
		const lane = this.lanes.get(id);
		if (!lane) return false;
		if (event.lane) {
			lane.result = event.lane;
			return true;
		}
		if (lane.result) return false; // what has ended stays as it ended
		const changed = lane.progress?.phase !== event.progress?.phase;
		lane.progress = event.progress;
		lane.seen = performance.now();
		return changed;
	}

	/** Reviewer (model), Criticizer (model) or Refs (model). */
	get title(): string {
		const names: Record<string, string> = { reviewer: "Reviewer", criticizer: "Criticizer", "ref-analyst": "Refs" };
		const role = this.started?.role ?? "";
		return `${names[role] ?? role} (${this.started?.model || "inherit"})`;
	}

	/** "1/3 done · 2 running". */
	get tally(): string {
		const lanes = [...this.lanes.values()];
		const count = (status: string) => lanes.filter((lane) => statusOf(lane) === status).length;
		const queued = count("queued");
		const running = count("running");
		const parts = [`${lanes.length - queued - running}/${lanes.length} done`];
		if (running > 0) parts.push(`${running} running`);
		if (queued > 0) parts.push(`${queued} queued`);
		return parts.join(" · ");
	}

	/** The lanes of the last batch that has begun: those that are shown side by side. */
	get batch(): Lane[] {
		const lanes = [...this.lanes.values()];
		const begun = lanes.filter((lane) => statusOf(lane) !== "queued").map((lane) => lane.planned.batch);
		const last = Math.max(lanes[0]?.planned.batch ?? 0, ...begun);
		return lanes.filter((lane) => lane.planned.batch === last);
	}

	/** "0:45" since it began. */
	get elapsed(): string {
		return clock(performance.now() - this.began);
	}

	/** What a person should know of it besides; "" for nothing. */
	get trouble(): string {
		return this.silent ? "the pilothouse daemon does not answer; the round goes on when it does" : "";
	}

	/** The round in lines of plain text: one that counts, one for each lane. */
	lines(): string[] {
		const lines = this.started ? [`${this.title} — ${this.tally}`] : [];
		for (const lane of this.lanes.values()) lines.push(`${labelOf(lane)}: ${stateOf(lane)}`);
		for (const notice of this.started?.notices ?? []) lines.push(`note: ${notice}`);
		if (this.trouble) lines.push(`note: ${this.trouble}`);
		return lines;
	}
}

/** queued, running, complete, failed or cancelled. */
export function statusOf(lane: Lane): string {
	return lane.result?.status ?? lane.progress?.status ?? "queued";
}

/** What a lane does at the moment, else what has become of it. */
export function phaseOf(lane: Lane): string {
	return (lane.result ? "" : lane.progress?.phase) || statusOf(lane);
}

/** What tells a lane from its neighbours: its reference, or its id, which names the lens. */
export function labelOf(lane: Lane): string {
	return lane.planned.refId || lane.planned.laneId;
}

/** "running · tool: read · turn 3 · 12.3k tokens · 0:45". */
export function stateOf(lane: Lane): string {
	const { result, progress } = lane;
	if (result) {
		const parts = [result.status, `${result.turns} turns`, tokens(result.usage), clock(result.durationMs)];
		if (result.error) parts.push(result.error.message);
		return parts.join(" · ");
	}
	if (!progress || progress.status === "queued") return "queued";
	const parts = [phaseOf(lane)];
	if (progress.turns > 0) parts.push(`turn ${progress.turns}`);
	if (progress.attempt > 1) parts.push(`attempt ${progress.attempt}`);
	parts.push(tokens(progress.usage), clock(progress.elapsedMs + performance.now() - (lane.seen ?? performance.now())));
	if (progress.warning) parts.push(progress.warning);
	return parts.join(" · ");
}

function tokens(usage: { input: number; output: number; cacheRead: number; cacheWrite: number }): string {
	const total = usage.input + usage.output + usage.cacheRead + usage.cacheWrite;
	return `${total < 1000 ? total : `${(total / 1000).toFixed(1)}k`} tokens`;
}

function clock(ms: number): string {
	const seconds = Math.floor(ms / 1000);
	return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
