import type { AgentToolResult, ExtensionAPI, ExtensionToolContext, ToolDefinition } from "@earendil-works/pi-coding-agent";
import type { TSchema } from "typebox";
import { type Backend, Silent } from "./backend.ts";
import { newCallID, run } from "./calls.ts";
import { converse } from "./conversations.ts";
import type { Deliveries } from "./deliveries.ts";
import type { Display } from "./display.ts";
import { bounded } from "./output.ts";
import { renderers } from "./render.ts";
import { Round } from "./round.ts";
import * as schemas from "./schemas.ts";
import { callerOf } from "./session.ts";
import type { CallEvent, CallTool, Json, RoundResult, Usage } from "./wire.ts";

const DRAW_INTERVAL = 100; // ms between updates that only change numbers

/** The details of a round's result: for those who draw it, and to know it again after a crash. */
export interface RoundDetails {
	call: string;
	lines: string[];
	runId?: string;
	roundId?: string;
	stored?: string;
	lanes?: { laneId: string; status: string; findings?: number; resultFile?: string | null }[];
}

/** Registers the tools. They are the same whatever the session's state: a model's view of them never changes. */
export function registerTools(pi: ExtensionAPI, backend: Backend, deliveries: Deliveries, display: Display): void {
	const rounds = (name: "refine" | "analyze_refs") => async (
		toolCallID: string,
		params: { workdir?: string },
		signal: AbortSignal | undefined,
		onUpdate: ((partial: AgentToolResult<RoundDetails>) => void) | undefined,
		ctx: ExtensionToolContext,
	) => await runRound(backend, deliveries, display, name, toolCallID, params, signal, onUpdate, ctx);
	const conversation = (name: string) => async (
		toolCallID: string,
		params: unknown,
		signal: AbortSignal | undefined,
		_onUpdate: unknown,
		ctx: ExtensionToolContext,
	) => await talk(pi, backend, name, toolCallID, params as Json, signal, ctx);

	register(pi, {
		name: "plans",
		label: "Plans",
		description:
			"Read and change the planning state of the workspace: settings, runs, decisions, references, checkpoints. " +
			"`show` and `init` tell what is there and which question to ask next.",
		promptSnippet: "Read and change the planning state of the workspace",
		parameters: schemas.plans,
		executionMode: "sequential",
		execute: async (toolCallID, params, signal, _onUpdate, ctx) => {
			const request = { id: newCallID(), tool: "plans" as const, session: callerOf(ctx), params: params as Json };
			const watcher = { event: () => undefined, silence: () => undefined, bears: 0 };
			const last = await deliveries.owe(toolCallID, request.id, () => run(backend, request, watcher, signal));
			if (last.problem) throw new Error(`pi-plans ${params.action} failed: ${last.problem.detail}`);
			return { content: [{ type: "text", text: bounded(JSON.stringify(last.result, undefined, 2)) }], details: {} };
		},
	});
	register(pi, {
		name: "refine",
		label: "Refine",
		description:
			"Have a plan, or what was built from it, judged by read-only subagents: one to three reviewers, or a criticizer who asks questions. " +
			"Takes minutes; every answer is recorded. Returns the findings and what to do with them.",
		promptSnippet: "Have a plan reviewed by independent read-only subagents",
		parameters: schemas.refine,
		executionMode: "sequential",
		execute: rounds("refine"),
	});
	register(pi, {
		name: "analyze_refs",
		label: "Analyze references",
		description:
			"Have downloaded references read by read-only subagents, one for each and three at a time, for what the target repository can learn from them. " +
			"Returns seven sections for each reference.",
		promptSnippet: "Have downloaded references analysed by read-only subagents",
		parameters: schemas.analyzeRefs,
		executionMode: "sequential",
		execute: rounds("analyze_refs"),
	});
	register(pi, {
		name: "ask_choice",
		label: "Ask",
		description:
			"Ask the user one question with options to choose from, and record question and answer. " +
			"A dismissed question is not an approval.",
		promptSnippet: "Ask the user one question with options",
		parameters: schemas.askChoice,
		executionMode: "sequential",
		execute: conversation("ask_choice"),
	});
	register(pi, {
		name: "execute_plan",
		label: "Execute plan",
		description: "Ask the user for his approval to carry out a plan, and start the execution when he gives it.",
		promptSnippet: "Ask for the approval of a plan and start its execution",
		parameters: schemas.executePlan,
		executionMode: "sequential",
		execute: conversation("execute_plan"),
	});
	register(pi, {
		name: "exit_plan_mode",
		label: "Exit plan mode",
		description:
			"Show the user the complete plan and leave plan mode when he approves exactly this text. Only while plan mode is active, " +
			"as the last and only tool call of the turn.",
		promptSnippet: "Submit the complete plan for approval while plan mode is active",
		parameters: schemas.exitPlanMode,
		executionMode: "sequential",
		execute: conversation("exit_plan_mode"),
	});
}

function register<Params extends TSchema, Details>(pi: ExtensionAPI, tool: ToolDefinition<Params, Details>): void {
	pi.registerTool({ ...tool, ...renderers(tool.name) });
}

/** Runs a round as a call of the daemon and shows its lanes while it runs. */
async function runRound(
	backend: Backend,
	deliveries: Deliveries,
	display: Display,
	tool: CallTool,
	toolCallID: string,
	{ workdir, ...params }: { workdir?: string },
	signal: AbortSignal | undefined,
	onUpdate: ((partial: AgentToolResult<RoundDetails>) => void) | undefined,
	ctx: ExtensionToolContext,
): Promise<AgentToolResult<RoundDetails>> {
	const request = { id: newCallID(), tool, session: callerOf(ctx, workdir), params: params as Json };
	const round = new Round(request.id);
	const shown = display.begin(ctx, round);
	let drawn = -Infinity;
	const draw = (changed: boolean) => {
		if (!changed && performance.now() - drawn < DRAW_INTERVAL) return;
		drawn = performance.now();
		if (round.started) shown.update();
		const lines = round.lines();
		onUpdate?.({ content: [{ type: "text", text: lines.join("\n") }], details: { call: round.call, lines } });
	};
	const watcher = {
		event: (event: CallEvent) => {
			const changed = round.take(event);
			if (round.started) draw(changed);
		},
		silence: (ms: number) => {
			if (round.hear(ms)) draw(true);
		},
		bears: backend.patience.round,
	};
	try {
		const last = await deliveries.owe(toolCallID, request.id, () => run(backend, request, watcher, signal));
		const details = { call: request.id, lines: round.started ? round.lines() : [] };
		if (last.problem) return { content: [{ type: "text", text: last.problem.detail }], details, isError: true };
		return roundResult(last.result as unknown as RoundResult, details);
	} catch (error) {
		if (!(error instanceof Silent && round.started)) throw error;
		deliveries.miss();
		throw new Error(`${error.message}; the round goes on when it does, and its result comes here then`);
	} finally {
		await shown.end();
	}
}

/** The result as the model and the session get it. A round without any answer is an error. */
function roundResult(result: RoundResult, details: RoundDetails): AgentToolResult<RoundDetails> {
	const paid = result.lanes.filter((lane) => !lane.reused).map((lane) => lane.usage);
	return {
		content: [{ type: "text", text: result.text }], // within Pi's bounds already
		details: {
			...details,
			runId: result.runId,
			roundId: result.roundId,
			stored: result.stored,
			lanes: result.lanes.map((lane) => ({
				laneId: lane.laneId,
				status: lane.status,
				findings: lane.findings?.length,
				resultFile: lane.resultFile,
			})),
		},
		usage: total(paid),
		isError: result.lanes.length > 0 && result.lanes.every((lane) => lane.status !== "complete"),
	};
}

/** What lanes have cost, in Pi's form. */
function total(usages: Usage[]): AgentToolResult<unknown>["usage"] {
	const sum = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cost: 0 };
	for (const usage of usages) {
		for (const key of Object.keys(sum) as (keyof Usage)[]) sum[key] += usage[key];
	}
	const { cost, ...tokens } = sum;
	const totalTokens = tokens.input + tokens.output + tokens.cacheRead + tokens.cacheWrite;
	return { ...tokens, totalTokens, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: cost } };
}

/** Runs a tool that may ask the user. */
async function talk(
	pi: ExtensionAPI,
	backend: Backend,
	name: string,
	toolCallID: string,
	params: Json,
	signal: AbortSignal | undefined,
	ctx: ExtensionToolContext,
): Promise<AgentToolResult<unknown>> {
	const { result } = await converse(pi, backend, ctx, { kind: "tool", name, args: params, callId: toolCallID }, signal);
	if (!result) throw new Error(`${name} ended without a result; see what was recorded with the tool plans, action show`);
	return {
		content: [{ type: "text", text: bounded(result.text) }],
		details: result.details ?? {},
		isError: result.isError,
		terminate: result.terminate,
	};
}
