import type {
	ExtensionAPI,
	ExtensionContext,
	FindToolCallEvent,
	GrepToolCallEvent,
	LsToolCallEvent,
	ReadToolCallEvent,
} from "@earendil-works/pi-coding-agent";
import { Problem, Silent } from "./backend.ts";

/**
 * What a session knows of its gates by itself. The daemon decides; this is for when it
 * cannot be reached. A session that was never in plan mode nor in a planning run goes
 * on as if there were no extension; one that was is held until the daemon answers,
 * because a forgotten plan mode would let everything pass.
 */

/** The part of the status line by which the daemon tells of plan mode. */
export const PLAN_STATUS = "pilothouse-plan";

const PLAN_MODE_ENTRY = "pilothouse-plan-mode";

/** Pi's tools that only read; they pass whatever the state. The types hold the names to Pi's. */
type Reader = (ReadToolCallEvent | GrepToolCallEvent | FindToolCallEvent | LsToolCallEvent)["toolName"];
const readers: ReadonlySet<string> = new Set<Reader>(["read", "grep", "find", "ls"]);

/** What the entry holds; the session tells a session from a copy of it. */
interface PlanMode {
	active?: boolean;
	session?: string;
}

/** Writes plan mode into the session itself when it changes. */
export function recordPlanMode(pi: ExtensionAPI, ctx: ExtensionContext, active: boolean): void {
	const session = ctx.sessionManager.getSessionId();
	const last = lastPlanMode(ctx);
	if ((last?.active ?? false) !== active || (active && last?.session !== session)) pi.appendEntry(PLAN_MODE_ENTRY, { active, session });
}

/** The reason to refuse a tool (or a command of the user) without the daemon; undefined lets it pass. */
export function refusal(ctx: ExtensionContext, error: Error, tool?: string): string | undefined {
	if (tool !== undefined && readers.has(tool)) return undefined;
	let state = "";
	if (inPlanMode(ctx)) state = "this session is in plan mode";
	else if (inPlanningRun(ctx)) state = "this session has a planning run";
	else if (error instanceof Problem && error.status >= 500) state = "it is not known whether this session is in plan mode";
	if (!state) return undefined;
	const wayOut = error instanceof Silent ? "Try again when it does, or end its process" : "Try again once `pilothouse serve --detach` has started the daemon";
	return (
		`${tool ?? "The command"} is refused because ${state} and pilothouse cannot judge it: ${error.message}. ` +
		`${wayOut}; until then only read, grep, find and ls work.`
	);
}

function inPlanMode(ctx: ExtensionContext): boolean {
	return lastPlanMode(ctx)?.active === true;
}

/** Of the whole session, not of a branch: going back in the tree does not leave plan mode. */
function lastPlanMode(ctx: ExtensionContext): PlanMode | undefined {
	const entry = ctx.sessionManager.getEntries().findLast((e) => e.type === "custom" && e.customType === PLAN_MODE_ENTRY);
	return entry?.type === "custom" ? (entry.data as PlanMode | undefined) : undefined;
}

/** A run that was started on this branch and whose execution was not. */
function inPlanningRun(ctx: ExtensionContext): boolean {
	const marks = ["pi-plans-run-start", "pi-plans-exec", "pi-plans-exec-cleared"];
	const entry = ctx.sessionManager.getBranch().findLast((e) => e.type === "custom" && marks.includes(e.customType));
	return entry?.type === "custom" && entry.customType === "pi-plans-run-start";
}
