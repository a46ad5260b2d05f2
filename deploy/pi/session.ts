import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { basename, join, resolve } from "node:path";
import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Screen, Session } from "./wire.ts";

/** The session as hooks name it. */
export function sessionOf(ctx: ExtensionContext, workdir?: string): Session {
	return { id: ctx.sessionManager.getSessionId(), workdir: within(ctx.cwd, workdir) };
}

/** The session as a call needs it that starts children in its name. */
export function callerOf(ctx: ExtensionContext, workdir?: string): Session {
	const environ = Object.entries(process.env).map(([name, value]) => `${name}=${value}`);
	return { ...sessionOf(ctx, workdir), environ, pi: piCommand(), model: modelOf(ctx) };
}

/** What the session has for a user interface. */
export function screenOf(ctx: ExtensionContext): Screen {
	return {
		has: ctx.hasUI,
		mode: ctx.mode,
		editor: ctx.hasUI && typeof ctx.ui.editor === "function",
		rows: process.stdout.rows ?? 0,
		cols: process.stdout.columns ?? 0,
		idle: ctx.isIdle(),
	};
}

/** The models that can be had, as selectors; first those that the user has scoped the session to. */
export function modelsOf(ctx: ExtensionContext): string[] {
	const models = [...ctx.scopedModels.map((scoped) => scoped.model), ...ctx.modelRegistry.getAvailable()];
	return [...new Set(models.map((model) => `${model.provider}/${model.id}`))];
}

/**
 * The session's model as a selector for a child, with its thinking level where the
 * model thinks: a role that inherits inherits both (seed: Config Schema).
 */
function modelOf(ctx: ExtensionContext): string | undefined {
	const model = ctx.model;
	if (!model) return undefined;
	const level = model.reasoning && ctx.thinkingLevel ? `:${ctx.thinkingLevel}` : "";
	return `${model.provider}/${model.id}${level}`;
}

/**
 * The command that has started this Pi, so that children are of the same version:
 * $PILOTHOUSE_PI, else this runtime with its script, else this program itself (spec:
 * subagents 4.3).
 */
function piCommand(): string {
	if (process.env.PILOTHOUSE_PI) return process.env.PILOTHOUSE_PI;
	const script = process.argv[1];
	if (script && existsSync(script)) return `${quoted(process.execPath)} ${quoted(script)}`;
	return /^(node|bun)(\.exe)?$/.test(basename(process.execPath)) ? "pi" : quoted(process.execPath);
}

/** A word for a shell. */
function quoted(word: string): string {
	return `'${word.replaceAll("'", `'\\''`)}'`;
}

/** A directory that a tool names, seen from the session's. */
function within(cwd: string, workdir: string | undefined): string {
	if (!workdir) return cwd;
	if (workdir === "~" || workdir.startsWith("~/")) return join(homedir(), workdir.slice(1));
	return resolve(cwd, workdir);
}
