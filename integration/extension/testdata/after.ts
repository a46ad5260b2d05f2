import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { end, took } from "./stopwatch.ts";

/** Is loaded after the extension whose hooks are measured: /took answers by a notice. */
export default function (pi: ExtensionAPI): void {
	pi.on("tool_call", () => end("tool_call"));
	pi.on("tool_result", () => end("tool_result"));
	pi.on("turn_end", () => end("turn_end"));
	pi.registerCommand("took", { handler: async (_args, ctx) => ctx.ui.notify(`took ${JSON.stringify(took())}`) });
}
