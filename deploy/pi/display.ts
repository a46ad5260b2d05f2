import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { notify } from "./actions.ts";
import type { Backend } from "./backend.ts";
import { Panel } from "./panel.ts";
import type { Round } from "./round.ts";

const STATUS = "pilothouse-lanes";
const REOPEN = "alt+l";

/** A round that is being shown. */
export interface Shown {
	/** Takes a change of the round over. */
	update(): void;
	/** Returns when nothing of the round is on the screen any more. */
	end(): Promise<void>;
}

/**
 * What a person sees of rounds at work: in a terminal an overlay with the lanes, and
 * wherever there is a status line a count in it. Closing the overlay changes nothing
 * for the lanes.
 */
export class Display {
	private readonly backend: Backend;
	private reopen: (() => void) | undefined;

	constructor(backend: Backend) {
		this.backend = backend;
	}

	register(pi: ExtensionAPI): void {
		pi.registerShortcut(REOPEN, {
			description: "Show the lanes at work",
			handler: (ctx) => {
				if (this.reopen) this.reopen();
				else notify(ctx, "No round is at work in this session.");
			},
		});
	}

	/** Begins to show a round. Rounds of a session run one after the other. */
	begin(ctx: ExtensionContext, round: Round): Shown {
		let overlay: Overlay | undefined;
		const open = () => {
			if (overlay?.open) return;
			overlay = new Overlay(ctx, this.backend, round);
		};
		let begun = false;
		return {
			update: () => {
				ctx.ui.setStatus(STATUS, `${round.title} ${round.tally}${ctx.mode === "tui" ? ` (${REOPEN})` : ""}`);
				if (!begun && ctx.mode === "tui") {
					this.reopen = open;
					open();
				}
				begun = true;
				overlay?.update();
			},
			end: async () => {
				this.reopen = undefined;
				await overlay?.close();
				ctx.ui.setStatus(STATUS, undefined);
			},
		};
	}
}

/** The overlay of a round, from its opening until the user or the end of the round closes it. */
class Overlay {
	open = true;
	private panel: Panel | undefined;
	private dismiss: (() => void) | undefined;
	private readonly closed: Promise<void>;

	constructor(ctx: ExtensionContext, backend: Backend, round: Round) {
		const shown = ctx.ui.custom<void>(
			(tui, theme, _keybindings, done) => {
				this.dismiss = () => done();
				this.panel = new Panel(tui, theme, backend, round, this.dismiss);
				if (!this.open) done();
				return this.panel;
			},
			{ overlay: true, overlayOptions: { anchor: "top-center", width: "78%", minWidth: 72, margin: { top: 1 } } },
		);
		this.closed = shown.finally(() => {
			this.open = false;
		});
	}

	update(): void {
		this.panel?.update();
	}

	async close(): Promise<void> {
		if (this.open) {
			this.open = false;
			this.dismiss?.();
		}
		await this.closed;
	}
}
