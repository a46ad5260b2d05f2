import { spawnSync } from "node:child_process";
import { appendFileSync } from "node:fs";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

/**
 * Has `pilothouse compact` answer every compaction of the session, and fails loudly when
 * it does not. COMPACT_PHASE is the phase to tell it, COMPACT_RECORD a file that gets
 * each request as a line.
 */
export default function (pi: ExtensionAPI) {
	pi.on("session_before_compact", (event) => {
		const { preparation, branchEntries, customInstructions, reason, willRetry } = event;
		const { read, written, edited } = preparation.fileOps;
		const request = JSON.stringify({
			preparation: { ...preparation, fileOps: { read: [...read], written: [...written], edited: [...edited] } },
			branchEntries,
			customInstructions,
			reason,
			willRetry,
			phase: JSON.parse(process.env.COMPACT_PHASE ?? "null"),
		});
		if (process.env.COMPACT_RECORD) appendFileSync(process.env.COMPACT_RECORD, `${request}\n`);
		const { status, stdout, stderr } = spawnSync(process.env.COMPACT_WITH ?? "", ["compact"], {
			input: request,
			encoding: "utf8",
			maxBuffer: 64 << 20,
		});
		if (status !== 0) {
			console.error(`pilothouse compact ended with ${status}: ${stderr}`);
			process.exit(70);
		}
		const answer = JSON.parse(stdout);
		if (answer.action === "cancel") return { cancel: true };
		return answer.action === "compaction" ? { compaction: answer.compaction } : undefined;
	});
}
