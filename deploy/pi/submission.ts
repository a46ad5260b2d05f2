import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";

const PATIENCE = 5_000; // ms for Pi to take a message over

/** Those who wait for Pi to take a message over. */
const waiting = new Set<{ text: string; taken: () => void }>();

/** Listens for what Pi takes over. */
export function watchSubmissions(pi: ExtensionAPI): void {
	const took = (text: string) => {
		for (const one of waiting) if (one.text === text) one.taken();
	};
	// A message for a busy agent is taken over when it is queued, after this event; one that
	// starts a run only when the run starts: a missing key ends it between the two.
	pi.on("input", (event) => {
		if (event.source === "extension" && event.streamingBehavior) took(event.text);
	});
	pi.on("before_agent_start", (event) => {
		if (event.messageType === "user") took(event.prompt);
	});
}

/**
 * Submits text as the user's and returns when Pi has taken it over. Pi does not tell
 * when it refuses a message, so what can be known is checked before, and the rest shows
 * in that nothing happens.
 */
export async function submit(pi: ExtensionAPI, ctx: ExtensionContext, text: string, deliverAs?: "steer" | "followUp"): Promise<void> {
	const idle = ctx.isIdle();
	if (idle && !(ctx.model && ctx.modelRegistry.hasConfiguredAuth(ctx.model))) {
		throw new Error("Pi has no model to ask; choose one with /model or log in with /login");
	}
	await new Promise<void>((resolve, reject) => {
		const one = {
			text,
			taken: () => {
				waiting.delete(one);
				clearTimeout(timer);
				resolve();
			},
		};
		const timer = setTimeout(() => {
			waiting.delete(one);
			reject(new Error("Pi has not taken the message over"));
		}, PATIENCE);
		waiting.add(one);
		pi.sendUserMessage(text, { deliverAs: idle ? undefined : (deliverAs ?? "followUp") });
	});
}
