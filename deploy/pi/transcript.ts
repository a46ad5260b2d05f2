import type { Theme } from "@earendil-works/pi-coding-agent";
import { stripTerminalSequences, wrapTextWithAnsi } from "@earendil-works/pi-tui";
import type { TranscriptEntry } from "./wire.ts";

const KEPT = 512 * 1024; // characters of a lane that can be scrolled back to
const PREVIEW = 3; // lines that are shown of a text while it is written

interface Block {
	id: string;
	type: TranscriptEntry["type"];
	tool: string;
	text: string;
	isError: boolean;
	done: boolean;
	drawn?: { width: number; lines: string[] };
}

/** What a lane has said and done, as lines for a terminal. */
export class Transcript {
	private readonly theme: Theme;
	private blocks: Block[] = [];
	private size = 0;

	constructor(theme: Theme) {
		this.theme = theme;
	}

	add(entry: TranscriptEntry): void {
		const id = `${entry.attempt}:${entry.turn}:${entry.key}:${entry.type}`;
		let block = this.blocks.findLast((b) => b.id === id);
		if (!block) {
			block = { id, type: entry.type, tool: entry.tool ?? "", text: "", isError: false, done: false };
			this.blocks.push(block);
		}
		const text = entry.text ?? "";
		block.text += text;
		block.isError = entry.isError ?? false;
		block.done = entry.done ?? false;
		block.drawn = undefined;
		this.size += text.length;
		while (this.size > KEPT && this.blocks.length > 1) this.size -= this.blocks.shift()?.text.length ?? 0;
	}

	lines(width: number): string[] {
		return this.blocks.flatMap((block) => {
			if (block.drawn?.width !== width) block.drawn = { width, lines: this.draw(block, width) };
			return block.drawn.lines;
		});
	}

	private draw(block: Block, width: number): string[] {
		const text = plain(block.text).trim();
		switch (block.type) {
			case "tool-call":
				return wrapTextWithAnsi(`${this.theme.fg("accent", `→ ${block.tool}`)} ${this.theme.fg("muted", argumentsOf(text).replace(/\s+/g, " "))}`, width);
			case "tool-result":
				return this.paint(text, width - 2, block.isError ? "error" : "toolOutput").map((line) => `  ${line}`);
			case "thinking":
				return this.paint(text, width, "thinkingText");
			default: {
				const lines = this.paint(text, width, "text");
				if (block.done || lines.length <= PREVIEW) return lines;
				const shown = lines.slice(-PREVIEW);
				while (stripTerminalSequences(shown[0] ?? "x") === "") shown.shift();
				return [this.theme.fg("dim", "…"), ...shown];
			}
		}
	}

	private paint(text: string, width: number, color: Parameters<Theme["fg"]>[0]): string[] {
		if (text === "") return [];
		return text.split("\n").flatMap((line) => wrapTextWithAnsi(line, width).map((part) => this.theme.fg(color, part)));
	}
}

/** The arguments of a tool as a person would write them; as they are while they are not complete. */
function argumentsOf(text: string): string {
	try {
		const named = Object.entries(JSON.parse(text) as Record<string, unknown>);
		const written = named.map(([name, value]) => {
			const word = typeof value === "string" ? value : JSON.stringify(value);
			return obvious.has(name) ? word : `${name}=${word}`;
		});
		return written.join(" ");
	} catch {
		return text;
	}
}

/** Arguments that need no name. */
const obvious = new Set(["path", "pattern", "command"]);

/** Text without anything that moves the cursor or changes colours. */
function plain(text: string): string {
	return stripTerminalSequences(text).replaceAll("\t", "    ").replaceAll("\r\n", "\n").replace(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/g, " ");
}
