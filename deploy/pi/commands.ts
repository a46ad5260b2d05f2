import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { notify } from "./actions.ts";
import type { Backend } from "./backend.ts";
import { converse } from "./conversations.ts";

/** The commands that the daemon carries out, with what the list of commands says of them. */
const commands: Record<string, string> = {
	plan: "Plan mode: /plan [on|off], or /plan REQUEST to enter it with a request",
	plans: "Show the state of planning in this workspace",
	"plans-execute": "Approve a plan and carry it out, or resume its execution",
	"plans-stop": "Stop the execution of the plan",
	"plans-abandon": "Give up the planning run",
	"plans-autocomplete-stop": "Decide the planning questions yourself again",
	"update-plan": "Have the plan revised: /update-plan [PLAN.md] [focus]",
	"resume-plans": "Go on with a run of an earlier session",
	"config-pi-plans": "Choose language, places, reviewer and criticizer of this workspace",
};

/** The skills that have a command of their own. */
const skills: Record<string, string> = {
	planning: "Plan a change; chooses the depth that it needs",
	"debug-and-plan": "Find the cause of a fault, then plan its repair",
	"plan-small": "Plan a small change: one criticizer",
	"plan-normal": "Plan a change: a reviewer and a criticizer",
	"plan-big": "Plan a large change: three reviewers and a criticizer",
	"plan-with-refs": "Plan a change after reading how others did it",
};

/** Registers the slash commands. */
export function registerCommands(pi: ExtensionAPI, backend: Backend): void {
	for (const [name, description] of Object.entries(commands)) {
		pi.registerCommand(name, {
			description,
			getArgumentCompletions: name === "plan" ? onOff : undefined,
			handler: async (args, ctx) => {
				try {
					await converse(pi, backend, ctx, { kind: "command", name, args });
				} catch (error) {
					notify(ctx, `/${name}: ${error instanceof Error ? error.message : error}`, "error");
				}
			},
		});
	}
	for (const [name, description] of Object.entries(skills)) {
		pi.registerCommand(name, {
			description,
			handler: async (args, ctx) => {
				const text = `/skill:${name} ${args}`.trim();
				pi.sendUserMessage(text, { expandPromptTemplates: true, deliverAs: ctx.isIdle() ? undefined : "followUp" });
			},
		});
	}
}

function onOff(prefix: string) {
	const words = ["on", "off"].filter((word) => word.startsWith(prefix));
	return words.length > 0 ? words.map((word) => ({ value: word, label: word })) : null;
}
