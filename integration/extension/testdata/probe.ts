import { existsSync } from "node:fs";
import { join } from "node:path";
import type { ExtensionAPI, Theme } from "@earendil-works/pi-coding-agent";
import { stripTerminalSequences, type TUI, visibleWidth } from "@earendil-works/pi-tui";
import { Type } from "typebox";
import type { Backend } from "../../../deploy/pi/backend.ts";
import { Panel } from "../../../deploy/pi/panel.ts";
import { Round } from "../../../deploy/pi/round.ts";
import { Widget } from "../../../deploy/pi/widget.ts";
import type { CallEvent, TranscriptEntry } from "../../../deploy/pi/wire.ts";

/** A panel to be drawn: events of its call, the transcript that each lane has, and keys. */
interface Drawing {
	rows: number;
	width: number;
	events: CallEvent[];
	transcript: TranscriptEntry[] | null;
	keys: string[] | null;
}

const painted = (text: string) => `\x1b[1;31m${text}\x1b[0m`;
const theme = { fg: (_color: string, text: string) => painted(text), bold: painted } as unknown as Theme;

/** Draws the widget of a round. */
function drawWidget({ width, events, silence }: { width: number; events: CallEvent[]; silence: number }): unknown {
	const round = new Round("call");
	for (const event of events) round.take(event);
	round.hear(silence);
	const widget = new Widget({ requestRender: () => undefined } as unknown as TUI, theme, round, "alt+l shows the lanes");
	const lines = widget.render(width);
	widget.dispose();
	return { lines: lines.map(stripTerminalSequences), widths: lines.map(visibleWidth) };
}

/** Draws a panel on a screen of that size. */
async function draw({ rows, width, events, transcript, keys }: Drawing): Promise<unknown> {
	const round = new Round("call");
	for (const event of events) round.take(event);
	const tui = { terminal: { rows }, requestRender: () => undefined } as unknown as TUI;
	const asked: string[] = [];
	const backend = {
		lines: async function* () {
			yield* transcript ?? [];
		},
		ask: async (method: string, path: string) => {
			asked.push(`${method} ${path}`);
		},
	} as unknown as Backend;
	let closed = 0;
	const panel = new Panel(tui, theme, backend, round, () => closed++);
	await new Promise((resolve) => setImmediate(resolve)); // the transcripts are read
	panel.render(width);
	for (const key of keys ?? []) panel.handleInput(key);
	const lines = panel.render(width);
	panel.dispose();
	return { lines: lines.map(stripTerminalSequences), widths: lines.map(visibleWidth), title: round.title, closed, asked };
}

/** Looks at Pi and at the extension from inside for the tests: /probe WHAT PARAMS answers by a notice. */
export default function (pi: ExtensionAPI): void {
	const answers: Record<string, (params: unknown) => unknown> = {
		tools: () => Object.fromEntries(pi.getAllTools().map((tool) => [tool.name, tool.parameters])),
		panel: (params) => draw(params as Drawing),
		widget: (params) => drawWidget(params as Parameters<typeof drawWidget>[0]),
	};
	pi.registerCommand("probe", {
		handler: async (args, ctx) => {
			const [what = "", ...params] = args.split(" ");
			const answer = await answers[what]?.(JSON.parse(params.join(" ")));
			ctx.ui.notify(`probe ${what} ${JSON.stringify(answer)}`);
		},
	});
	pi.registerCommand("goto", {
		handler: async (entry, ctx) => {
			await ctx.navigateTree(entry, { summarize: false });
		},
	});
	const nothing = Type.Object({});
	const baked = { content: [{ type: "text" as const, text: "baked" }], details: {} };
	pi.registerTool({ name: "bake", label: "Bake", description: "Bakes", parameters: nothing, execute: async () => baked });
	pi.registerTool({
		name: "sniff",
		label: "Sniff",
		description: "Sniffs",
		parameters: nothing,
		annotations: { readOnlyHint: true },
		execute: async () => baked,
	});
	// It keeps the agent busy until the file go-on is there, and what it calls next waiting.
	pi.registerTool({
		name: "hold",
		label: "Hold",
		description: "Waits",
		parameters: nothing,
		annotations: { readOnlyHint: true },
		executionMode: "sequential",
		execute: async (_id, _params, _signal, _onUpdate, ctx) => {
			while (!existsSync(join(ctx.cwd, "go-on"))) await new Promise((resolve) => setTimeout(resolve, 20));
			return baked;
		},
	});
	// It says that it only reads, and has another tool write.
	pi.registerTool({
		name: "delegate_write",
		label: "Delegate",
		description: "Has a file written",
		parameters: nothing,
		annotations: { readOnlyHint: true },
		execute: async (_id, _params, _signal, _onUpdate, ctx) => {
			const { result } = await ctx.executeTool("write", { path: "bread.txt", content: "bread" });
			return { content: result.content, details: {}, isError: result.isError };
		},
	});
}
