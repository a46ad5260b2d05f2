import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { perform } from "./actions.ts";
import type { Backend } from "./backend.ts";
import { show } from "./dialogs.ts";
import { callerOf, modelsOf, screenOf } from "./session.ts";
import type { Answer, Dialog, Json, Reply, Screen } from "./wire.ts";

/** A command of the user or a tool of the model that may ask. */
export interface Topic {
	kind: "command" | "tool";
	name: string;
	args: Json;
	callId?: string;
}

/**
 * Holds a conversation with the daemon: shows its dialogs, does its actions and returns
 * its last reply. The signal ends it; what had to last is durable by then.
 */
export async function converse(
	pi: ExtensionAPI,
	backend: Backend,
	ctx: ExtensionContext,
	topic: Topic,
	signal?: AbortSignal,
): Promise<Reply> {
	const session = callerOf(ctx);
	const ui: Screen = { ...screenOf(ctx), models: topic.kind === "command" ? modelsOf(ctx) : undefined };
	const start = { session, ui, ...topic };
	let reply = await backend.ask<Reply>("POST", "/v1/conversations", start, signal, Infinity);
	while (reply.dialog) {
		const { dialog } = reply;
		let answer: Answer;
		try {
			answer = await respond(pi, backend, ctx, reply, dialog, signal);
			signal?.throwIfAborted();
		} catch (error) {
			end(backend, dialog.conversation);
			throw error;
		}
		const path = `/v1/conversations/${dialog.conversation}/answer`;
		const body = { session: session.id, answer: { step: dialog.step, idle: ctx.isIdle(), ...answer } };
		reply = await backend.ask<Reply>("POST", path, body, signal, Infinity);
	}
	await perform(pi, backend, ctx, reply.actions);
	return reply;
}

/** Does the actions of a reply and answers its dialog; one of kind perform asks only for the former. */
async function respond(
	pi: ExtensionAPI,
	backend: Backend,
	ctx: ExtensionContext,
	reply: Reply,
	dialog: Dialog,
	signal: AbortSignal | undefined,
): Promise<Answer> {
	if (dialog.kind !== "perform") {
		await perform(pi, backend, ctx, reply.actions);
		return await show(ctx, dialog, signal);
	}
	try {
		await perform(pi, backend, ctx, reply.actions);
		return {};
	} catch (error) {
		return { failed: error instanceof Error ? error.message : String(error) };
	}
}

function end(backend: Backend, conversation: string): void {
	backend.ask("DELETE", `/v1/conversations/${conversation}`).catch(() => undefined); // it ends with its session at the latest
}
