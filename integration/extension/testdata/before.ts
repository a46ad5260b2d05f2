import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { begin } from "./stopwatch.ts";

/** Is loaded before the extension whose hooks are measured. */
export default function (pi: ExtensionAPI): void {
	pi.on("tool_call", () => begin("tool_call"));
	pi.on("tool_result", () => begin("tool_result"));
	pi.on("turn_end", () => begin("turn_end"));
}
