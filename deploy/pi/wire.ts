/**
 * What travels between a Pi session and the daemon, as JSON (supervisor/api,
 * openapi.json). Only what the extension uses is named here.
 */

/** Counts incompatible changes of the wire; the daemon must have the same. */
export const PROTOCOL = 1;

export interface Health {
	version: string;
	protocol: number;
	pid: number;
}

/** Who asks. */
export interface Session {
	id: string;
	workdir: string;
	/** NAME=value; what children get. Left out where none is started. */
	environ?: string[];
	/** The command that starts pi. */
	pi?: string;
	/** The session's own model: what a role that inherits gets. */
	model?: string;
}

/** What a session says of whoever sits before it. */
export interface Screen {
	has: boolean;
	mode: string;
	editor: boolean;
	rows: number;
	cols: number;
	idle: boolean;
	/** Selectors, provider/model, of the models that can be had; for commands, which may offer them. */
	models?: string[];
}

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** What a session has to do: the actions first, in order, then the rest. */
export interface Reply {
	block?: { reason: string };
	systemPrompt?: string;
	messages?: Message[];
	actions?: Action[];
	compaction?: { action: string; reason?: string; compaction?: Compaction };
	dialog?: Dialog;
	result?: ToolResult;
}

export interface Message {
	customType: string;
	content: string;
	display: boolean;
	details?: Json;
}

export interface Action {
	kind: string;
	level?: "info" | "warning" | "error";
	key?: string;
	text?: string;
	message?: Message;
	triggerTurn?: boolean;
	deliverAs?: "steer" | "followUp" | "nextTurn";
	customType?: string;
	data?: Json;
	instructions?: string;
	then?: string;
}

export interface Compaction {
	summary: string;
	firstKeptEntryId: string;
	tokensBefore: number;
	details?: Json;
}

export interface Dialog {
	conversation: string;
	step: number;
	kind: string;
	title?: string;
	message?: string;
	options?: string[];
	text?: string;
	placeholder?: string;
}

export interface Answer {
	step?: number;
	cancelled?: boolean;
	index?: number;
	text?: string;
	/** Why the actions of a dialog of kind perform were not done. */
	failed?: string;
	/** Whether the agent is at rest by now. */
	idle?: boolean;
}

export interface ToolResult {
	text: string;
	details?: Json;
	isError?: boolean;
	terminate?: boolean;
}

/** The tools that run as calls: they take long, and go on without their session. */
export type CallTool = "refine" | "analyze_refs" | "plans";

export interface CallRequest {
	id: string;
	tool: CallTool;
	session: Session;
	params: Json;
}

export interface CallInfo {
	id: string;
	tool: CallTool;
	state: "running" | "finished" | "lost" | "delivered";
	runId?: string;
	roundId?: string;
}

/** A line of the stream of a call. `result` or `problem` is the last. */
export interface CallEvent {
	seq: number;
	call: string;
	type: string;
	started?: Started;
	progress?: Progress;
	lane?: LaneResult;
	result?: Json;
	problem?: ProblemBody;
}

export interface Started {
	runId: string;
	roundId: string;
	role: string;
	model?: string;
	lanes: PlannedLane[];
	reused?: string[];
	notices?: string[];
}

export interface PlannedLane {
	laneId: string;
	name: string;
	lens?: string;
	refId?: string;
	batch: number;
}

export interface Usage {
	input: number;
	output: number;
	cacheRead: number;
	cacheWrite: number;
	cost: number;
}

export interface Progress {
	laneId: string;
	status: string;
	phase: string;
	tool?: string;
	attempt: number;
	turns: number;
	usage: Usage;
	model?: string;
	elapsedMs: number;
	warning?: string;
}

export interface LaneResult {
	laneId: string;
	name: string;
	lens?: string | null;
	refId?: string;
	batch?: number;
	status: string;
	attempts: number;
	model?: string | null;
	usage: Usage;
	turns: number;
	durationMs: number;
	error?: { class: string; message: string } | null;
	resultFile?: string | null;
	reused?: boolean;
	findings?: unknown[];
}

/** What a round comes to. */
export interface RoundResult {
	runId: string;
	roundId: string;
	role: string;
	target?: string;
	model: string | null;
	lanes: LaneResult[];
	text: string;
	stored?: string;
}

/** A piece of a content block of a lane's transcript. */
export interface TranscriptEntry {
	attempt: number;
	turn: number;
	key: string;
	type: "assistant-text" | "thinking" | "tool-call" | "tool-result";
	text?: string;
	tool?: string;
	isError?: boolean;
	done?: boolean;
}

/** An error as the daemon tells of it (RFC 9457). */
export interface ProblemBody {
	type: string;
	status: number;
	detail: string;
}
