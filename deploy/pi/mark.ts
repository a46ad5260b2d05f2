import type { Theme } from "@earendil-works/pi-coding-agent";
import { type Lane, statusOf } from "./round.ts";

const marks: Record<string, { sign: string; color: Parameters<Theme["fg"]>[0] }> = {
	complete: { sign: "✓", color: "success" },
	failed: { sign: "✗", color: "error" },
	cancelled: { sign: "⊘", color: "warning" },
	running: { sign: "●", color: "accent" },
};

/** A sign for where a lane stands. */
export function markOf(theme: Theme, lane: Lane): string {
	const { sign, color } = marks[statusOf(lane)] ?? { sign: "○", color: "muted" };
	return theme.fg(color, sign);
}
