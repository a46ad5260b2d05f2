import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { notify } from "./actions.ts";
import type { Backend } from "./backend.ts";
import { Panel } from "./panel.ts";
import type { Round } from "./round.ts";
import { Widget } from "./widget.ts";

const LANES = "pilothouse-lanes"; // our part of the status line, and our widget
const REOPEN = "alt+l";

/** A round that is being shown. */
export interface Shown {
	/** Takes a change of the round over. */
	update(): void;
	/** Returns when nothing of the round is on the screen any more. */
	end(): Promise<void>;
}

/**
 * What a person sees of rounds at work: in a terminal an overlay with the lanes or, once
 * that is closed, two lines above the editor, and wherever there is a status line a count
 * in it. Closing the overlay changes nothing for the lanes.
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
		let ended = false;
		const open = () => {
			if (overlay?.open) return;
			ctx.ui.setWidget(LANES, undefined);
			overlay = new Overlay(ctx, this.backend, round, () => {
				if (!ended) ctx.ui.setWidget(LANES, (tui, theme) => new Widget(tui, theme, round, `${REOPEN} shows the lanes`));
			});
		};
		let begun = false;
		return {
			update: () => {
				ctx.ui.setStatus(LANES, `${round.title} · ${round.tally}${ctx.mode === "tui" ? ` (${REOPEN})` : ""}`);
				if (!begun && ctx.mode === "tui") {
					this.reopen = open;
					open();
				}
				begun = true;
				overlay?.update();
			},
			end: async () => {
				ended = true;
				this.reopen = undefined;
				await overlay?.close();
				if (ctx.mode === "tui") ctx.ui.setWidget(LANES, undefined);
				ctx.ui.setStatus(LANES, undefined);
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

	constructor(ctx: ExtensionContext, backend: Backend, round: Round, closed: () => void) {
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
			closed();
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
