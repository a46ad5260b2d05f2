import { relative } from "node:path";
import { getMarkdownTheme, type Theme, type ToolDefinition } from "@earendil-works/pi-coding-agent";
import { type Component, Markdown, Text } from "@earendil-works/pi-tui";

type Renderers = Pick<ToolDefinition, "renderCall" | "renderResult">;
type Arguments = Record<string, unknown>;

/** How calls and results of a tool are drawn in a terminal. */
export function renderers(tool: string): Renderers {
	return {
		renderCall: (args, theme) => drawCall(tool, (args ?? {}) as Arguments, theme),
		renderResult: (result, { expanded, isPartial }, theme) => {
			const text = result.content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
			const { lines } = (result.details ?? {}) as { lines?: string[] };
			const short = lines?.length ? lines : tool === "plans" ? digest(text) : undefined;
			if (short && !expanded) return new Text(short.map((line) => theme.fg("muted", line)).join("\n"), 0, 0);
			if (expanded && !isPartial && tool !== "plans") return new Markdown(text, 0, 0, getMarkdownTheme());
			return new Text(theme.fg("toolOutput", expanded ? text : brief(text)), 0, 0);
		},
	};
}

/** A plan that is submitted is shown in full: what is approved must have been seen. */
function drawCall(tool: string, args: Arguments, theme: Theme): Component {
	if (tool === "exit_plan_mode") return new Markdown(String(args.plan ?? ""), 0, 0, getMarkdownTheme());
	const title = theme.fg("toolTitle", theme.bold(tool));
	return new Text(`${title} ${theme.fg("muted", summary(tool, args))}`, 0, 0);
}

function summary(tool: string, args: Arguments): string {
	const words = (...names: string[]) => names.map((name) => args[name]).filter((value) => value !== undefined && value !== "");
	switch (tool) {
		case "plans":
			return words("action", "topic", "tag", "role", "mode", "status").join(" ");
		case "refine":
			return [...words("role"), args.reviewers ? `×${args.reviewers}` : "", ...words("target", "planPath")].filter(Boolean).join(" ");
		case "analyze_refs":
			return Array.isArray(args.refs) ? args.refs.map((ref: { id?: string }) => ref?.id ?? "").join(", ") : "";
		case "ask_choice":
			return words("question").join("");
		default:
			return words("planPath").join("");
	}
}

/** What a person wants to know of a result of the tool plans; undefined when it is of another form. */
function digest(text: string): string[] | undefined {
	let result: PlansResult;
	try {
		result = JSON.parse(text) as PlansResult;
	} catch {
		return undefined; // an error, in words
	}
	const { run, config, notices = [] } = result;
	const lines = [...notices];
	if (run) lines.push(`run ${run.run_id} is ${run.status}; its documents are in ${relative(process.cwd(), run.artifact_dir)}`);
	if (config) {
		const { language, artifact_root: documents, refs_root: references } = config;
		lines.push(`language ${language.tag ?? "undecided"} · documents in ${documents} · references ${references ? `in ${references}` : "undecided"}`);
	}
	return lines.length > 0 ? lines : undefined;
}

/** The parts of results that are shown. */
interface PlansResult {
	run?: { run_id: string; status: string; artifact_dir: string };
	config?: { language: { tag: string | null }; artifact_root: string; refs_root: string | null };
	notices?: string[];
}

const BRIEF_LINES = 8;

function brief(text: string): string {
	const lines = text.split("\n");
	if (lines.length <= BRIEF_LINES) return text;
	return [...lines.slice(0, BRIEF_LINES), `… ${lines.length - BRIEF_LINES} more lines`].join("\n");
}
