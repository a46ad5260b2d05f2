import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { Backend } from "./backend.ts";
import { registerCommands } from "./commands.ts";
import { Deliveries } from "./deliveries.ts";
import { Display } from "./display.ts";
import { registerHooks } from "./hooks.ts";
import { watchSubmissions } from "./submission.ts";
import { registerTools } from "./tools.ts";

/**
 * The planning workflow in a Pi session. The extension draws, asks and forwards; all is
 * decided in the daemon of pilothouse. In the children of a round it does nothing.
 */
export default function (pi: ExtensionAPI): void {
	if (process.env.PI_PLANS_REFINER) return;
	const backend = new Backend();
	const deliveries = new Deliveries(pi, backend);
	const display = new Display(backend);
	watchSubmissions(pi);
	registerHooks(pi, backend, deliveries);
	registerTools(pi, backend, deliveries, display);
	registerCommands(pi, backend);
	display.register(pi);
	pi.on("resources_discover", () => ({ skillPaths: [join(dirname(fileURLToPath(import.meta.url)), "skills")] }));
}
