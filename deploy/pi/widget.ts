import type { Theme } from "@earendil-works/pi-coding-agent";
import { type Component, type TUI, truncateToWidth, visibleWidth } from "@earendil-works/pi-tui";
import { markOf } from "./mark.ts";
import { labelOf, phaseOf, type Round } from "./round.ts";

const TICK = 1_000; // ms between redraws when nothing happens: the clock goes on

/** A round in two lines: what it is and how far, and where each lane of the batch at work stands. */
export class Widget implements Component {
	private readonly theme: Theme;
	private readonly round: Round;
	private readonly hint: string;
	private readonly timer: NodeJS.Timeout;

	constructor(tui: TUI, theme: Theme, round: Round, hint: string) {
		this.theme = theme;
		this.round = round;
		this.hint = hint;
		this.timer = setInterval(() => tui.requestRender(), TICK);
	}

	dispose(): void {
		clearInterval(this.timer);
	}

	invalidate(): void {}

	render(width: number): string[] {
		const { round, theme } = this;
		const room = width - 2; // a column free at each side, as around Pi's own texts
		const about = `${theme.bold(round.title)}${theme.fg("muted", ` · ${round.tally} · ${round.elapsed}`)}`;
		const gap = room - visibleWidth(about) - visibleWidth(this.hint);
		const first = gap > 1 ? `${about}${" ".repeat(gap)}${theme.fg("dim", this.hint)}` : about;
		const lanes = round.batch.map((lane) => `${markOf(theme, lane)} ${labelOf(lane)} ${theme.fg("muted", phaseOf(lane))}`);
		const second = round.trouble ? theme.fg("warning", round.trouble) : lanes.join("  ");
		return [first, second].map((line) => ` ${truncateToWidth(line, room, "…")}`);
	}
}
