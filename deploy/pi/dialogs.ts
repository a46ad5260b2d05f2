import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Answer, Dialog } from "./wire.ts";

/** Shows a dialog and returns what the user made of it. */
export async function show(ctx: ExtensionContext, dialog: Dialog, signal: AbortSignal | undefined): Promise<Answer> {
	const { ui } = ctx;
	const title = dialog.title ?? "";
	switch (dialog.kind) {
		case "select": {
			const options = dialog.options ?? [];
			const chosen = await ui.select(title, options, { signal });
			return chosen === undefined ? dismissed : { index: options.indexOf(chosen) };
		}
		case "confirm":
			return { index: (await ui.confirm(title, dialog.message ?? "", { signal })) ? 0 : 1 };
		case "input":
			return answered(await ui.input(headed(ctx, dialog), dialog.placeholder, { signal }));
		case "editor":
			return answered(await Promise.race([ui.editor(title, dialog.text), aborted(signal)]));
		default:
			throw new Error(`this extension does not know the dialog ${dialog.kind}; run \`pilothouse install\` again`);
	}
}

/** Rejects when the signal aborts: an editor does not take it. */
function aborted(signal: AbortSignal | undefined): Promise<never> {
	return new Promise((_resolve, reject) => {
		signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
	});
}

/** The title of an input. A terminal of Pi shows no placeholder, so there the title has it. */
function headed(ctx: ExtensionContext, { title = "", placeholder }: Dialog): string {
	return ctx.mode === "tui" && placeholder ? `${title} — ${placeholder}` : title;
}

const dismissed: Answer = { cancelled: true };

function answered(text: string | undefined): Answer {
	return text === undefined ? dismissed : { text };
}
