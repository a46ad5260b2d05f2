import { spawn } from "node:child_process";
import { lstatSync, readFileSync, statSync } from "node:fs";
import * as http from "node:http";
import type { Socket } from "node:net";
import { dirname, isAbsolute, join } from "node:path";
import { StringDecoder } from "node:string_decoder";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Patience, patienceOf } from "./patience.ts";
import { type Health, type ProblemBody, PROTOCOL } from "./wire.ts";

/** The daemon answered that it cannot. Its message is a sentence for the user. */
export class Problem extends Error {
	readonly type: string;
	readonly status: number;
	constructor(body: ProblemBody) {
		super(body.detail);
		this.type = body.type;
		this.status = body.status;
	}
}

/** There is no daemon, and none could be started. */
export class Unreachable extends Error {}

/** There is a daemon, and it hangs. */
export class Silent extends Unreachable {
	constructor(pid?: number) {
		super(`the pilothouse daemon${pid ? ` (process ${pid})` : ""} does not answer`);
	}
}

/** Whoever answers questions. */
export interface Asker {
	readonly patience: Patience;
	ask<T>(method: string, path: string, body?: unknown, signal?: AbortSignal, patience?: number): Promise<T>;
}

/** Nobody listens on the socket, so nobody has seen the request. */
class Absent extends Error {}

const START_PATIENCE = 25_000; // ms for `pilothouse serve --detach`
const RESTART_PAUSE = 5_000; // ms between attempts to start a daemon that does not start
const REFUSAL_PAUSE = 30_000; // ms before a daemon that is not ours to talk to is asked again

/**
 * The daemon of this user, found and started as the command line does it. A request
 * that nobody has seen is made again once a daemon answers; all others are made once.
 */
export class Backend implements Asker {
	readonly socket: string;
	readonly patience: Patience;
	/** Whether a daemon is started where none answers. */
	starts = true;
	/** Is told when a daemon answers, and whether it has taken the place of another. */
	onMet: ((daemon: Asker, replaced: boolean) => Promise<void>) | undefined;
	private readonly environ: NodeJS.ProcessEnv;
	private readonly program: string;
	private greeted: Promise<void> | undefined;
	private known: { pid: number; socket: string } | undefined; // the daemon that was greeted last
	private unstarted: Pause | undefined; // the last attempt to start a daemon
	private refused: (Pause & { socket: string }) | undefined; // the last attempt to be understood by one

	constructor(environ: NodeJS.ProcessEnv = process.env) {
		this.environ = environ;
		this.socket = socketPath(environ);
		this.patience = patienceOf(environ);
		this.program = installedProgram() ?? "pilothouse";
	}

	/** Returns when a daemon that understands us answers; starts one if none runs. */
	ready(): Promise<void> {
		if (this.greeted && this.known && this.known.socket !== identityOf(this.socket)) this.greeted = undefined;
		this.greeted ??= this.greet().catch((error) => {
			this.greeted = undefined;
			throw error;
		});
		return this.greeted;
	}

	/**
	 * Asks a question and returns the JSON of the answer. An endless patience ends, too,
	 * when the daemon gives no sign of life. Throws Problem, Unreachable.
	 */
	async ask<T>(method: string, path: string, body?: unknown, signal?: AbortSignal, patience = this.patience.answer): Promise<T> {
		await this.ready(); // a start takes the time that it takes
		const over = new AbortController();
		const limit = patience === Infinity ? this.silence(over.signal) : AbortSignal.timeout(patience);
		try {
			const response = await this.send(method, path, body, AbortSignal.any(signal ? [signal, limit] : [limit]));
			return JSON.parse(await text(response)) as T;
		} catch (error) {
			if (limit.aborted) throw this.silent();
			if (signal?.aborted || !brokeOff(error)) throw error;
			throw new Unreachable("the pilothouse daemon ended before it answered");
		} finally {
			over.abort();
		}
	}

	/**
	 * Looks again and again whether the daemon gives a sign of life, and tells for how many
	 * ms it has given none. Returns when it is over.
	 */
	async listen(told: (silence: number) => void, over: AbortSignal): Promise<void> {
		let heard = performance.now();
		while (await waited(this.patience.hook, over)) {
			const lives = await this.lives(over);
			if (lives) heard = performance.now();
			if (!over.aborted) told(lives ? 0 : performance.now() - heard);
		}
	}

	/**
	 * Asks and yields the JSON lines of the answer. A stream that breaks off ends by an
	 * error that is no Problem.
	 */
	async *lines<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): AsyncGenerator<T> {
		const response = await this.send(method, path, body, signal);
		const decoder = new StringDecoder("utf8");
		let rest = "";
		try {
			for await (const piece of response) {
				const parts = (rest + decoder.write(piece as Buffer)).split("\n");
				rest = parts.pop() ?? "";
				for (const line of parts) yield JSON.parse(line) as T;
			}
		} finally {
			response.destroy();
		}
	}

	/** Takes the daemon for one that hangs: it has to show first that it answers at all. */
	silent(): Silent {
		this.greeted = undefined;
		return new Silent(this.known?.pid);
	}

	private async send(method: string, path: string, body: unknown, signal?: AbortSignal): Promise<http.IncomingMessage> {
		await this.ready();
		try {
			return await this.request(method, path, body, signal);
		} catch (error) {
			if (!(error instanceof Absent)) throw error;
			this.greeted = undefined; // the daemon has gone; another may be started
			await this.ready();
			return await this.request(method, path, body, signal);
		}
	}

	private async request(
		method: string,
		path: string,
		body: unknown,
		signal?: AbortSignal,
		connected?: (socket: Socket) => void,
	): Promise<http.IncomingMessage> {
		const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
			const headers: http.OutgoingHttpHeaders = {};
			if (this.environ.TRACEPARENT) headers.traceparent = this.environ.TRACEPARENT;
			const content = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
			if (content) {
				headers["content-type"] = "application/json";
				headers["content-length"] = content.length;
			}
			// A connection for each request: on a unix socket it costs nothing, and none can
			// be stale when the daemon was replaced.
			const request = http.request({ socketPath: this.socket, method, path, headers, signal, agent: false }, resolve);
			if (connected) request.on("socket", connected);
			request.on("error", (error: NodeJS.ErrnoException) => {
				const absent = error.code === "ENOENT" || error.code === "ECONNREFUSED";
				reject(absent ? new Absent("no pilothouse daemon is running") : error);
			});
			request.end(content);
		});
		const status = response.statusCode ?? 0;
		if (status < 300) return response;
		const answer = await text(response);
		let problem: ProblemBody;
		try {
			problem = JSON.parse(answer) as ProblemBody;
		} catch {
			throw new Error(`the pilothouse daemon answered with HTTP status ${status}`);
		}
		throw new Problem(problem);
	}

	private async greet(): Promise<void> {
		const socket = identityOf(this.socket);
		if (this.refused?.socket === socket) throwWithin(this.refused);
		const earlier = this.known;
		this.known = undefined;
		try {
			const { pid } = await this.meet();
			this.known = { pid, socket: socket || identityOf(this.socket) };
		} catch (error) {
			this.known = earlier;
			if (error instanceof Silent) {
				const refusal = new Silent(earlier?.socket === socket ? earlier.pid : undefined);
				this.refused = { ...pause(refusal, Infinity), socket };
				void this.outlast();
				throw refusal;
			}
			const reason = error instanceof Error ? error.message : String(error);
			const refusal = new Unreachable(`the pilothouse daemon cannot be reached: ${reason}`);
			if (this.starts && error !== this.unstarted?.error) this.refused = { ...pause(refusal, REFUSAL_PAUSE), socket };
			throw refusal;
		}
		const replaced = earlier !== undefined && earlier.pid !== this.known.pid;
		await this.onMet?.(this.met(), replaced).catch(() => undefined); // it only helps
	}

	/** Asks the daemon that is being greeted. */
	private met(): Asker {
		const { patience } = this;
		return {
			patience,
			ask: async <T>(method: string, path: string, body?: unknown, _signal?: AbortSignal, ms = patience.answer) => {
				const response = await this.request(method, path, body, AbortSignal.timeout(ms));
				return JSON.parse(await text(response)) as T;
			},
		};
	}

	/**
	 * Waits for the end of a silence, so that nobody else has to: a daemon that hangs
	 * answers in the moment in which it goes on, and one that is ended breaks off.
	 */
	private async outlast(): Promise<void> {
		try {
			const response = await this.request("GET", "/v1/health", undefined, undefined, (socket) => socket.unref());
			await text(response);
		} catch {
			// It has ended; whoever asks next starts another.
		}
		this.refused = undefined;
	}

	/** A signal that aborts once the daemon gives no sign of life. */
	private silence(over: AbortSignal): AbortSignal {
		const silence = new AbortController();
		void this.listen((ms) => {
			if (ms > 0) silence.abort();
		}, over);
		return silence.signal;
	}

	/** Tells whether the daemon does not hang. Of one that has gone, those who wait for it hear themselves. */
	private async lives(over: AbortSignal): Promise<boolean> {
		const limit = AbortSignal.timeout(this.patience.health);
		try {
			await text(await this.request("GET", "/v1/health", undefined, AbortSignal.any([over, limit])));
		} catch {
			return !limit.aborted;
		}
		return true;
	}

	/** Makes sure that a daemon answers, and of the version that we understand. */
	private async meet(): Promise<Health> {
		let health = await this.health();
		if (!health) {
			if (!this.starts) throw new Absent("there is none");
			throwWithin(this.unstarted);
			// Another session may be faster: then there is a daemon although ours did not start.
			const failure = await this.start().then(
				() => new Error("it was started and does not answer"),
				(error: Error) => error,
			);
			health = await this.health();
			if (!health) {
				this.unstarted = pause(failure, RESTART_PAUSE);
				throw failure;
			}
		}
		if (health.protocol !== PROTOCOL) {
			throw new Error(
				`it is pilothouse ${health.version} and speaks protocol ${health.protocol}, this extension speaks ${PROTOCOL}; ` +
					"run `pilothouse install` again, and `pilothouse serve --stop` to end the daemon of the other version",
			);
		}
		return health;
	}

	/** Who listens; undefined when nobody does. */
	private async health(): Promise<Health | undefined> {
		checkDirectory(dirname(this.socket));
		const limit = AbortSignal.timeout(this.patience.health);
		try {
			const response = await this.request("GET", "/v1/health", undefined, limit);
			return JSON.parse(await text(response)) as Health;
		} catch (error) {
			if (error instanceof Absent) return undefined;
			if (limit.aborted) throw new Silent();
			throw error;
		}
	}

	/** Starts the daemon in the background. It ends by itself when nobody needs it. */
	private start(): Promise<void> {
		return new Promise((resolve, reject) => {
			const child = spawn(this.program, ["serve", "--detach", "--idle-exit", "30m"], {
				cwd: "/",
				env: this.environ,
				stdio: ["ignore", "ignore", "pipe"],
				timeout: START_PATIENCE,
			});
			let said = "";
			child.stderr?.on("data", (piece: Buffer) => {
				said = (said + piece.toString()).slice(-2_000);
			});
			child.on("error", (error: NodeJS.ErrnoException) => {
				reject(error.code === "ENOENT" ? new Error(`there is no program ${this.program}; run \`pilothouse install\` again`) : error);
			});
			child.on("close", (code) => {
				if (code === 0) resolve();
				else reject(new Error(said.trim().replace(/^pilothouse: /, "") || `pilothouse serve ended with status ${code}`));
			});
		});
	}
}

/** Tells that a connection ended in the middle. */
function brokeOff(error: unknown): boolean {
	return error instanceof Error && "code" in error && (error.code === "ECONNRESET" || error.code === "EPIPE");
}

/** Waits and returns true, or false at once when it is over. */
async function waited(ms: number, over: AbortSignal): Promise<boolean> {
	return await sleep(ms, true, { signal: over }).catch(() => false);
}

/** A failure that is taken for granted for a while, so that not every hook waits for it. */
interface Pause {
	error: Error;
	until: number;
}

function pause(error: Error, ms: number): Pause {
	return { error, until: performance.now() + ms };
}

function throwWithin(pause: Pause | undefined): void {
	if (pause && performance.now() < pause.until) throw pause.error;
}

/** Tells one socket from a later one at the same place; "" for none. */
function identityOf(socket: string): string {
	const info = statSync(socket, { throwIfNoEntry: false });
	return info ? `${info.ino} ${info.ctimeMs}` : "";
}

/** Where the daemon listens: $PILOTHOUSE_SOCKET, else this user's own place. */
function socketPath(environ: NodeJS.ProcessEnv): string {
	if (environ.PILOTHOUSE_SOCKET) return environ.PILOTHOUSE_SOCKET;
	const runtime = environ.XDG_RUNTIME_DIR ?? "";
	if (isAbsolute(runtime) && statSync(runtime, { throwIfNoEntry: false })?.isDirectory()) {
		return join(runtime, "pilothouse", "api.sock");
	}
	return join(environ.TMPDIR || "/tmp", `pilothouse-${process.getuid?.() ?? ""}`, "api.sock");
}

/** The program that has installed this extension, if one has. */
function installedProgram(): string | undefined {
	try {
		const manifest = join(dirname(fileURLToPath(import.meta.url)), "installed.json");
		const { program } = JSON.parse(readFileSync(manifest, "utf8")) as { program: string };
		return statSync(program).isFile() ? program : undefined;
	} catch {
		return undefined; // used from a checkout, or the program has moved: the one on PATH
	}
}

/** Refuses a directory where somebody else could put a socket of his own. */
function checkDirectory(dir: string): void {
	const info = lstatSync(dir, { throwIfNoEntry: false });
	if (!info) return; // no daemon has been here yet
	let reason = "";
	if (info.isSymbolicLink()) reason = "it is a symbolic link";
	else if (!info.isDirectory()) reason = "it is not a directory";
	else if (info.uid !== process.getuid?.()) reason = "it belongs to another user";
	else if (info.mode & 0o022) reason = "other users can write to it";
	if (reason) throw new Error(`${dir} must not hold its socket: ${reason}; remove it or name another place with PILOTHOUSE_SOCKET`);
}

async function text(response: http.IncomingMessage): Promise<string> {
	const pieces: Buffer[] = [];
	for await (const piece of response) pieces.push(piece as Buffer);
	return Buffer.concat(pieces).toString("utf8");
}
