import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Backend } from "./backend.ts";
import { acknowledge, rejoin, waiting } from "./calls.ts";
import type { CallInfo, RoundResult } from "./wire.ts";

const RESULT = "pilothouse-result";

/**
 * Results on their way into the session. The daemon keeps a result until it is
 * acknowledged, and it is acknowledged once Pi has it in the session: neither a killed
 * Pi nor a killed daemon loses an answer that was paid for.
 */
export class Deliveries {
	private readonly pi: ExtensionAPI;
	private readonly backend: Backend;
	private readonly owed = new Map<string, string>(); // call id by tool call id
	private readonly followed = new Set<string>(); // calls whose results come as messages
	private leaving = new AbortController();
	private missed = false;

	constructor(pi: ExtensionAPI, backend: Backend) {
		this.pi = pi;
		this.backend = backend;
	}

	/** Runs a call for a tool; the result of the tool is the one of the call, unless it fails. */
	async owe<Result>(toolCallID: string, call: string, run: () => Promise<Result>): Promise<Result> {
		this.owed.set(toolCallID, call);
		try {
			return await run();
		} catch (error) {
			this.owed.delete(toolCallID);
			throw error;
		}
	}

	/** Notes that a call may go on without its tool. */
	miss(): void {
		this.missed = true;
	}

	/** Takes up calls that go on without their tools, if there may be any. */
	async catchUp(ctx: ExtensionContext): Promise<void> {
		if (this.missed) await this.recover(ctx);
	}

	/** Acknowledges what the session has now. */
	async settle(toolCallIDs: string[]): Promise<void> {
		const settled = toolCallIDs.filter((id) => this.owed.has(id));
		await Promise.all(settled.map((id) => acknowledge(this.backend, this.owed.get(id) ?? "")));
		for (const id of settled) this.owed.delete(id);
	}

	/**
	 * Takes up what an earlier life of this session has left: results that arrived are
	 * acknowledged, the others come as a message, those of rounds at work when they end.
	 */
	async recover(ctx: ExtensionContext): Promise<void> {
		if (this.leaving.signal.aborted) this.leaving = new AbortController();
		const waits = await waiting(this.backend, ctx.sessionManager.getSessionId());
		this.missed = false;
		const cared = new Set([...this.owed.values(), ...this.followed]);
		const calls = waits.filter((call) => !cared.has(call.id));
		if (calls.length === 0) return;
		const arrived = new Set<unknown>();
		for (const entry of ctx.sessionManager.getEntries()) {
			if (entry.type === "message" && entry.message.role === "toolResult") arrived.add((entry.message.details as { call?: string } | undefined)?.call);
			if (entry.type === "custom_message" && entry.customType === RESULT) arrived.add((entry.details as { call?: string } | undefined)?.call);
		}
		for (const call of calls) {
			if (arrived.has(call.id)) await acknowledge(this.backend, call.id);
			else if (call.tool === "plans") await acknowledge(this.backend, call.id); // what it did is in the state
			else {
				this.bringIn(ctx, call).catch(() => {
					this.followed.delete(call.id);
					this.missed = true; // it is kept, and offered again
				});
			}
		}
	}

	/** Leaves what has not arrived to the next life of the session. */
	leave(): void {
		this.leaving.abort();
		this.owed.clear();
		this.followed.clear();
	}

	private async bringIn(ctx: ExtensionContext, call: CallInfo): Promise<void> {
		this.followed.add(call.id);
		const { signal } = this.leaving;
		if (call.state === "running") {
			ctx.ui.notify(`A ${call.tool} round of this session is still at work; its result comes here when it ends.`, "info");
		}
		const last = await rejoin(this.backend, call.id, signal);
		const result = last.result as unknown as RoundResult | undefined;
		const text = result?.text ?? last.problem?.detail ?? "";
		this.pi.sendMessage({
			customType: RESULT,
			content: `The ${call.tool} call that was under way when this session was interrupted has ended.\n\n${text}`,
			display: true,
			details: { call: call.id, runId: call.runId, roundId: call.roundId },
		});
		await acknowledge(this.backend, call.id);
	}
}
