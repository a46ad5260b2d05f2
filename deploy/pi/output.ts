import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { truncateHead } from "@earendil-works/pi-coding-agent";

/**
 * Text within the bounds that Pi sets for its own tools (2000 lines, 50 KiB). Of a
 * longer one the head is kept, and all of it goes to a file that only this user reads.
 */
export function bounded(text: string): string {
	const cut = truncateHead(text);
	if (!cut.truncated) return text;
	const path = join(tmpdir(), `pilothouse-${randomUUID()}.txt`);
	writeFileSync(path, text, { mode: 0o600, flag: "wx" });
	return `${cut.content}\n\n[Truncated: ${cut.outputLines} of ${cut.totalLines} lines shown. All of it is in ${path}.]`;
}
