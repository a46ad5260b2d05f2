import type { Theme } from "@earendil-works/pi-coding-agent";
import { type Component, matchesKey, type TUI, type TuiMouseEvent, type TuiMouseEventResult, truncateToWidth, visibleWidth } from "@earendil-works/pi-tui";
import type { Backend } from "./backend.ts";
import { markOf } from "./mark.ts";
import { type Lane, labelOf, type Round, stateOf } from "./round.ts";
import { Transcript } from "./transcript.ts";
import type { TranscriptEntry } from "./wire.ts";

const MIN_ROWS = 18;
const MAX_ROWS = 32;
const SHARE = 0.78; // of the terminal's height
const TICK = 1_000; // ms between redraws when nothing happens: the clocks go on

/** The lanes of the batch at work, each in a pane of its own, with what they say. */
export class Panel implements Component {
	private readonly tui: TUI;
	private readonly theme: Theme;
	private readonly backend: Backend;
	private readonly round: Round;
	private readonly close: () => void;
	private readonly leaving = new AbortController();
	private readonly timer: NodeJS.Timeout;
	private panes: Pane[] = [];
	private focus = 0;
	private asking = false; // whether the lane in focus is to be cancelled
	private notice = "";

	constructor(tui: TUI, theme: Theme, backend: Backend, round: Round, close: () => void) {
		this.tui = tui;
		this.theme = theme;
		this.backend = backend;
		this.round = round;
		this.close = close;
		this.timer = setInterval(() => tui.requestRender(), TICK);
		this.update();
	}

	/** Takes a change of the round over. */
	update(): void {
		const batch = this.round.batch;
		if (batch.length !== this.panes.length || batch.some((lane, i) => lane !== this.panes[i]?.lane)) {
			this.panes = batch.map((lane) => new Pane(this.theme, lane));
			this.focus = 0;
			for (const pane of this.panes) void this.follow(pane);
		}
		this.tui.requestRender();
	}

	/** Ends what the panel reads. The lanes go on. */
	dispose(): void {
		clearInterval(this.timer);
		this.leaving.abort();
	}

	invalidate(): void {}

	handleInput(data: string): void {
		const pane = this.panes[this.focus];
		const asked = this.asking;
		this.asking = false;
		this.notice = "";
		if (matchesKey(data, "escape")) {
			if (!asked) this.close();
		} else if (asked && data === "y") {
			if (pane) void this.cancel(pane.lane);
		} else if (data === "x") {
			this.asking = pane !== undefined && isLive(pane.lane);
		} else if (matchesKey(data, "tab")) {
			this.focus = (this.focus + 1) % Math.max(1, this.panes.length);
		} else if (matchesKey(data, "shift+tab")) {
			this.focus = (this.focus + this.panes.length - 1) % Math.max(1, this.panes.length);
		} else if (matchesKey(data, "up")) pane?.scroll(-1);
		else if (matchesKey(data, "down")) pane?.scroll(1);
		else if (matchesKey(data, "pageUp")) pane?.scroll(-pane.height);
		else if (matchesKey(data, "pageDown")) pane?.scroll(pane.height);
		else if (matchesKey(data, "home")) pane?.scroll(-Infinity);
		else if (matchesKey(data, "end")) pane?.scroll(Infinity);
		this.tui.requestRender();
	}

	handleMouse(event: TuiMouseEvent): TuiMouseEventResult | undefined {
		if (event.type !== "wheel" || !event.wheelDelta) return undefined;
		const rows = (event.height - 3) / Math.max(1, this.panes.length);
		this.panes[Math.floor((event.y - 1) / rows)]?.scroll(event.wheelDelta);
		return { handled: true };
	}

	render(width: number): string[] {
		const rows = Math.min(MAX_ROWS, Math.max(MIN_ROWS, Math.floor(this.tui.terminal.rows * SHARE)));
		const inner = width - 4;
		const border = (text: string) => this.theme.fg("border", text);
		const row = (text: string) => `${border("│")} ${truncateToWidth(text, inner, "…", true)} ${border("│")}`;
		const space = rows - 3; // the frame and the line with the keys
		const each = Math.floor(space / Math.max(1, this.panes.length));
		const lines = [this.edge(width, "╭", "╮", this.theme.bold(this.round.title), this.round.tally)];
		this.panes.forEach((pane, i) => {
			lines.push(this.edge(width, "├", "┤", pane.label(i === this.focus), pane.state()));
			for (const line of pane.lines(inner, each - 1)) lines.push(row(line));
		});
		while (lines.length < space + 1) lines.push(row(""));
		lines.push(row(this.theme.fg("dim", this.help())));
		lines.push(this.edge(width, "╰", "╯", "", ""));
		return lines;
	}

	private help(): string {
		const pane = this.panes[this.focus];
		if (this.asking && pane) return `Cancel ${labelOf(pane.lane)}? y cancels it, any other key does not.`;
		if (this.notice) return this.notice;
		if (this.round.trouble) return this.round.trouble;
		return "Tab lane · ↑↓ scroll · End follow · x cancel · Esc hide, lanes go on";
	}

	/** A line of the frame with words in it. */
	private edge(width: number, left: string, right: string, title: string, tally: string): string {
		const border = (text: string) => this.theme.fg("border", text);
		const room = width - 4;
		const first = title && ` ${truncateToWidth(title, Math.floor(room / 2) - 2, "…")} `;
		const last = tally && ` ${truncateToWidth(tally, room - visibleWidth(first) - 3, "…")} `;
		const fill = room - visibleWidth(first) - visibleWidth(last);
		return `${border(`${left}─`)}${first}${border("─".repeat(fill))}${last}${border(`─${right}`)}`;
	}

	private async follow(pane: Pane): Promise<void> {
		const path = `/v1/lanes/${this.round.call}/${pane.lane.planned.laneId}/transcript?follow=1`;
		try {
			for await (const entry of this.backend.lines<TranscriptEntry>("GET", path, undefined, this.leaving.signal)) {
				pane.transcript.add(entry);
				this.tui.requestRender();
			}
		} catch {
			// The panel was closed, or the daemon has gone: the round's own events tell of that.
		}
	}

	private async cancel(lane: Lane): Promise<void> {
		try {
			await this.backend.ask("DELETE", `/v1/calls/${this.round.call}/lanes/${lane.planned.laneId}?reason=${encodeURIComponent("the user cancelled the lane")}`);
			this.notice = `${labelOf(lane)} is being cancelled.`;
		} catch (error) {
			this.notice = error instanceof Error ? error.message : String(error);
		}
		this.tui.requestRender();
	}
}

/** One lane: a line that tells where it stands, and its transcript below. */
class Pane {
	readonly lane: Lane;
	readonly transcript: Transcript;
	height = 0; // of the transcript
	private readonly theme: Theme;
	private top: number | undefined; // first line that is shown; undefined follows the end
	private total = 0;

	constructor(theme: Theme, lane: Lane) {
		this.theme = theme;
		this.lane = lane;
		this.transcript = new Transcript(theme);
	}

	scroll(lines: number): void {
		const last = Math.max(0, this.total - this.height);
		const top = Math.min(last, Math.max(0, (this.top ?? last) + lines));
		this.top = top === last ? undefined : top;
	}

	/** As many lines of the transcript as there are rows. */
	lines(width: number, rows: number): string[] {
		const lines = this.transcript.lines(width);
		this.total = lines.length;
		this.height = rows;
		const last = Math.max(0, this.total - this.height);
		const top = Math.min(last, this.top ?? last);
		const shown = lines.slice(top, top + this.height);
		while (shown.length < this.height) shown.push("");
		return shown;
	}

	label(focused: boolean): string {
		const name = labelOf(this.lane);
		return `${markOf(this.theme, this.lane)} ${focused ? this.theme.fg("accent", this.theme.bold(`▸ ${name}`)) : name}`;
	}

	state(): string {
		const place = this.top === undefined ? "" : this.theme.fg("warning", `line ${this.top + 1} of ${this.total} · `);
		return place + this.theme.fg("muted", stateOf(this.lane));
	}
}

function isLive(lane: Lane): boolean {
	return lane.result === undefined;
}
