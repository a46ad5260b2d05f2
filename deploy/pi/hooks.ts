import {
	type ContextEvent,
	type ExtensionAPI,
	type ExtensionContext,
	type ToolCallEventResult,
	type ToolInfo,
	VERSION,
} from "@earendil-works/pi-coding-agent";
import { ActionError, hookOf, notify } from "./actions.ts";
import type { Asker, Backend } from "./backend.ts";
import type { Deliveries } from "./deliveries.ts";
import { PLAN_STATUS, recordPlanMode, refusal } from "./gates.ts";
import type { Message, Reply } from "./wire.ts";

const MESSAGE_SLOTS = 3; // messages that one reply may put before a turn
const MOST_SAID = 1_000_000; // characters of the agent's messages that are told again

type AssistantContent = Extract<ContextEvent["messages"][number], { role: "assistant" }>["content"];

/**
 * Tells the daemon what happens in the session and does what it answers. Hooks that
 * only tell are open: without the daemon the session goes on. The gates before tools and
 * commands fail closed while the session may be in plan mode or a planning run.
 */
export function registerHooks(pi: ExtensionAPI, backend: Backend, deliveries: Deliveries): void {
	const tell = async (ctx: ExtensionContext, name: string, event: unknown, patience?: number): Promise<Reply> => {
		try {
			return await hookOf(pi, backend, ctx, name, event, patience);
		} catch {
			return {};
		}
	};

	let current: ExtensionContext | undefined;
	let unknown = false; // the daemon has not heard of the session when it began
	backend.onMet = async (daemon, replaced) => {
		if (!current) return;
		if (replaced || unknown) await introduce(pi, daemon, current, "reload");
		unknown = false;
		deliveries.catchUp(current).catch(() => undefined); // what is waiting is kept
	};
	pi.on("session_start", async (event, ctx) => {
		current = ctx;
		unknown = false;
		backend.starts = true;
		try {
			await introduce(pi, backend, ctx, event.reason);
			await deliveries.recover(ctx);
		} catch (error) {
			unknown = true;
			deliveries.miss();
			notify(ctx, error instanceof Error ? error.message : String(error), "warning");
		}
	});
	pi.on("session_tree", async (_event, ctx) => {
		await introduce(pi, backend, ctx, "tree").catch(() => undefined); // as with all that only tells
	});
	pi.on("session_shutdown", async (event, ctx) => {
		current = undefined;
		backend.starts = false; // one that has ended knows of no session
		deliveries.leave();
		await tell(ctx, "session_shutdown", { reason: event.reason }, backend.patience.farewell);
	});

	pi.on("tool_call", async (event, ctx): Promise<ToolCallEventResult | undefined> => {
		const { toolName, toolCallId, input } = event;
		const sideEffects = sideEffectsOf(pi.getAllTools().find((tool) => tool.name === toolName));
		const reason = await verdict(pi, backend, ctx, "tool_call", { toolName, toolCallId, input, sideEffects }, toolName);
		return reason === undefined ? undefined : { block: true, reason };
	});
	pi.on("user_bash", async (event, ctx) => {
		const reason = await verdict(pi, backend, ctx, "user_bash", { command: event.command, cwd: event.cwd });
		if (reason === undefined) return undefined;
		return { result: { output: reason, exitCode: 1, cancelled: false, truncated: false } };
	});
	pi.on("tool_result", async (event, ctx) => {
		const { toolName, toolCallId, input, details, isError } = event;
		await tell(ctx, "tool_result", { toolName, toolCallId, input, details, isError });
	});

	pi.on("input", async (event, ctx) => {
		const { text, source, streamingBehavior } = event;
		await tell(ctx, "input", { text, source, streamingBehavior });
	});
	registerBeforeAgentStart(pi, tell);
	pi.on("agent_start", async (_event, ctx) => {
		await tell(ctx, "agent_start", {});
	});
	pi.on("turn_end", async (event, ctx) => {
		await deliveries.settle(event.toolResults.map((result) => result.toolCallId));
		if (event.message.role !== "assistant") return;
		const { content, stopReason, usage } = event.message;
		await tell(ctx, "turn_end", { text: textOf(content), stopReason, usage, hasUI: ctx.hasUI });
	});
	pi.on("agent_settled", async (event, ctx) => {
		const rest = { aborted: event.aborted, idle: ctx.isIdle(), pendingMessages: ctx.hasPendingMessages(), hasUI: ctx.hasUI };
		try {
			await hookOf(pi, backend, ctx, "agent_settled", rest);
		} catch (error) {
			// An agent that was to go on and cannot must not look as if it did.
			if (error instanceof ActionError) await tell(ctx, "agent_settled", { ...rest, wakeFailed: error.message });
		}
	});
	pi.on("context", (event) => {
		const last = event.messages.findLastIndex(nudges);
		const messages = event.messages.filter((message, i) => i === last || !nudges(message));
		return messages.length < event.messages.length ? { messages } : undefined;
	});

	pi.on("session_before_compact", async (event, ctx) => {
		const { branchEntries, customInstructions, reason, willRetry } = event;
		const { tokensBefore, previousSummary, fileOps } = event.preparation; // its messages are those of the branch once more
		const touched = { read: [...fileOps.read], written: [...fileOps.written], edited: [...fileOps.edited] };
		const preparation = { tokensBefore, previousSummary, fileOps: touched };
		const told = { preparation, branchEntries, customInstructions, reason, willRetry };
		const { compaction } = await tell(ctx, "session_before_compact", told, backend.patience.compaction);
		if (compaction?.reason) notify(ctx, compaction.reason, compaction.action === "cancel" ? "warning" : "info");
		if (compaction?.action === "cancel") return { cancel: true };
		if (compaction?.action === "compaction" && compaction.compaction) return { compaction: compaction.compaction };
		return undefined; // Pi's own
	});
	// Only when this has returned is the compaction over for Pi, and a message can follow.
	pi.on("session_compact", ({ reason, willRetry, fromExtension }, ctx) => {
		void tell(ctx, "session_compact", { reason, willRetry, fromExtension, piVersion: VERSION });
	});
	pi.on("session_compact_failed", async ({ reason, willRetry, fromExtension, aborted, errorMessage }, ctx) => {
		await tell(ctx, "session_compact_failed", { reason, willRetry, fromExtension, aborted, errorMessage });
	});
}

/** Tells the daemon of a session that it does not know, or that stands elsewhere now. */
async function introduce(pi: ExtensionAPI, daemon: Asker, ctx: ExtensionContext, reason: string): Promise<void> {
	const branch = ctx.sessionManager.getBranch();
	const entries = branch.filter((e) => e.type === "custom" && /^(pi-plans-|pilothouse-plan-mode$)/.test(e.customType));
	const told = { reason, entries, said: saidSinceSnapshot(branch), hasUI: ctx.hasUI };
	const { actions = [] } = await hookOf(pi, daemon, ctx, "session_start", told);
	recordPlanMode(
		pi,
		ctx,
		actions.some((action) => action.kind === "status" && action.key === PLAN_STATUS && action.text),
	);
}

/** What the agent has said since the last snapshot of an execution; no daemon may have heard it. */
function saidSinceSnapshot(branch: ReturnType<ExtensionContext["sessionManager"]["getBranch"]>): string[] {
	const snapshot = branch.findLastIndex((e) => e.type === "custom" && e.customType === "pi-plans-exec");
	if (snapshot < 0) return [];
	const said: string[] = [];
	let room = MOST_SAID;
	for (const entry of branch.slice(snapshot + 1).reverse()) {
		if (entry.type !== "message" || entry.message.role !== "assistant") continue;
		const text = textOf(entry.message.content);
		room -= text.length;
		if (room < 0) break;
		said.unshift(text);
	}
	return said;
}

function textOf(content: AssistantContent): string {
	return content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
}

/** A hidden message that lets the agent go on: the model needs the last of them alone. */
function nudges(message: ContextEvent["messages"][number]): boolean {
	return message.role === "custom" && /^pi-plans-(goal-wait|[a-z]+-resume)$/.test(message.customType);
}

type Tell = (ctx: ExtensionContext, name: string, event: unknown) => Promise<Reply>;

/**
 * Before a turn the daemon may add to the system prompt and put several messages before
 * it. Pi takes one message from a handler, so each further one has a handler of its own.
 */
function registerBeforeAgentStart(pi: ExtensionAPI, tell: Tell): void {
	let further: Message[] = [];
	pi.on("before_agent_start", async (event, ctx) => {
		const told = event.messageType === "user" ? { messageType: "user", prompt: event.prompt } : { messageType: "custom" };
		const { systemPrompt, messages = [] } = await tell(ctx, "before_agent_start", told);
		const [message, ...others] = messages;
		further = others;
		return { message, systemPrompt: systemPrompt ? `${event.systemPrompt}\n\n${systemPrompt}` : undefined };
	});
	for (let slot = 1; slot < MESSAGE_SLOTS; slot++) pi.on("before_agent_start", () => ({ message: further.shift() }));
}

/** Why something must not happen; undefined lets it happen. */
async function verdict(
	pi: ExtensionAPI,
	backend: Backend,
	ctx: ExtensionContext,
	hook: "tool_call" | "user_bash",
	event: unknown,
	tool?: string,
): Promise<string | undefined> {
	try {
		const { block } = await hookOf(pi, backend, ctx, hook, event);
		return block?.reason;
	} catch (error) {
		const failure = error instanceof Error ? error : new Error(String(error));
		return refusal(ctx, failure, tool);
	}
}

/** What a tool declares about itself, in the words of plan mode; undefined when nothing. */
function sideEffectsOf(tool: ToolInfo | undefined): "none" | "workspace" | "external" | undefined {
	const hints = tool?.annotations;
	if (hints?.readOnlyHint) return "none";
	if (hints?.openWorldHint) return "external";
	return hints?.readOnlyHint === false || hints?.destructiveHint ? "workspace" : undefined;
}
