import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Asker } from "./backend.ts";
import { PLAN_STATUS, recordPlanMode } from "./gates.ts";
import { sessionOf } from "./session.ts";
import { submit } from "./submission.ts";
import type { Action, Json, Reply } from "./wire.ts";

/** The session could not do what the daemon has asked for. */
export class ActionError extends Error {}

/** Does what the daemon has asked for, in its order. Throws an ActionError at the first that fails. */
export async function perform(pi: ExtensionAPI, daemon: Asker, ctx: ExtensionContext, actions: Action[] = []): Promise<void> {
	for (const action of actions) {
		try {
			await act(pi, daemon, ctx, action);
		} catch (error) {
			throw new ActionError(error instanceof Error ? error.message : String(error));
		}
	}
}

async function act(pi: ExtensionAPI, daemon: Asker, ctx: ExtensionContext, action: Action): Promise<void> {
	switch (action.kind) {
		case "notify":
			notify(ctx, action.text ?? "", action.level);
			return;
		case "status":
			status(pi, ctx, action.key ?? "pilothouse", action.text ?? "");
			return;
		case "send":
			if (!action.message) return;
			pi.sendMessage(action.message, { triggerTurn: action.triggerTurn, deliverAs: action.deliverAs });
			return;
		case "user":
			await submit(pi, ctx, action.text ?? "", action.deliverAs === "nextTurn" ? "followUp" : action.deliverAs);
			return;
		case "entry":
			pi.appendEntry(action.customType ?? "", action.data);
			return;
		case "compact":
			compact(pi, daemon, ctx, action);
			return;
		default:
			throw new Error(`this extension does not know the action ${action.kind}; run \`pilothouse install\` again`);
	}
}

/** Sets a part of the status line. Plan mode is to be seen from afar, where there are colours. */
function status(pi: ExtensionAPI, ctx: ExtensionContext, key: string, text: string): void {
	const striking = key === PLAN_STATUS && ctx.mode === "tui" && text !== "";
	ctx.ui.setStatus(key, (striking ? ctx.ui.theme.fg("warning", text) : text) || undefined);
	if (key === PLAN_STATUS) recordPlanMode(pi, ctx, text !== "");
}

/** Tells the user; where no interface is, on stderr, which -p leaves to such words. */
export function notify(ctx: ExtensionContext, text: string, level: Action["level"] = "info"): void {
	if (ctx.hasUI) ctx.ui.notify(text, level);
	else process.stderr.write(`${text}\n`);
}

/** Starts a compaction; what became of it is reported as a hook, with the word that the daemon gave for it. */
function compact(pi: ExtensionAPI, daemon: Asker, ctx: ExtensionContext, action: Action): void {
	const report = (hook: string, event: Json) => {
		hookOf(pi, daemon, ctx, hook, event).catch((error: Error) => notify(ctx, error.message, "warning"));
	};
	const failed = (error: Error) => report("session_compact_failed", { then: action.then ?? "", errorMessage: error.message });
	try {
		ctx.compact({
			customInstructions: action.instructions,
			onComplete: () => report("session_compact", { then: action.then ?? "" }),
			onError: failed,
		});
	} catch (error) {
		failed(error instanceof Error ? error : new Error(String(error))); // the turn that was interrupted for it has to go on
	}
}

/** Asks the daemon about an event of the session, does the actions of its reply and returns it. */
export async function hookOf(
	pi: ExtensionAPI,
	daemon: Asker,
	ctx: ExtensionContext,
	name: string,
	event: unknown,
	patience = daemon.patience.hook,
): Promise<Reply> {
	const reply = await daemon.ask<Reply>("POST", `/v1/hooks/${name}`, { session: sessionOf(ctx), event }, undefined, patience);
	await perform(pi, daemon, ctx, reply.actions);
	return reply;
}
