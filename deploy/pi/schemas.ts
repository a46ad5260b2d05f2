import { StringEnum } from "@earendil-works/pi-ai";
import { Type } from "typebox";

/**
 * The parameters of the tools, as the model sees them (spec: state 1.4, subagents 4.1
 * and 4.2, execution 5.2 and 5.6, plan mode). The daemon checks them again.
 */

const text = (description: string) => Type.String({ description });
const optional = (description: string) => Type.Optional(text(description));
const oneOf = <const Values extends readonly string[]>(values: Values, description: string) => StringEnum(values, { description });

const workdir = optional("Directory of the workspace; the session's by default");

export const plans = Type.Object({
	action: oneOf(
		[
			"init",
			"show",
			"set-language",
			"set-artifact-root",
			"set-refs-root",
			"set-graph-enabled",
			"set-role",
			"start-run",
			"set-status",
			"record-decision",
			"record-ref",
			"record-subagent",
			"record-checkpoint",
		],
		"What to do",
	),
	workdir,
	topic: optional("start-run: the subject in a few words"),
	skill: optional("start-run: the skill that plans"),
	requestText: optional("start-run: what the user has asked for, literally"),
	tag: optional("set-language: a BCP 47 tag, for example en or zh-Hans"),
	languageSource: Type.Optional(oneOf(["user", "auto"], "set-language: who has chosen")),
	artifactRoot: optional("set-artifact-root: where planning documents go"),
	artifactRootSource: Type.Optional(oneOf(["user", "auto"], "set-artifact-root: who has chosen")),
	refsRoot: optional("set-refs-root: where references are downloaded to"),
	refsRootSource: Type.Optional(oneOf(["user", "auto"], "set-refs-root: who has chosen")),
	enabled: Type.Optional(Type.Boolean({ description: "set-graph-enabled: whether the code graph is wanted" })),
	role: Type.Optional(oneOf(["reviewer", "criticizer"], "set-role: whose setting")),
	mode: Type.Optional(oneOf(["delegated-subagent", "current-session"], "set-role: how the role works")),
	modelSelector: optional("set-role: inherit, or an exact provider/model of this Pi"),
	confirmed: Type.Optional(Type.Boolean({ description: "set-role: the user has answered the model question" })),
	resetConfirmation: Type.Optional(Type.Boolean({ description: "set-role: the model question is to be asked again" })),
	runId: optional("The run; the session's own by default"),
	status: Type.Optional(oneOf(["planning", "accepted", "executing", "stopped", "abandoned", "done"], "set-status: the new status")),
	decision: Type.Optional(
		Type.Object({
			question: text("What was asked"),
			options: Type.Array(Type.String(), { description: "What there was to choose from" }),
			answer: text("What was chosen"),
			answerSource: text("user or auto-complete"),
			artifact: optional("The document that the decision is about"),
		}),
	),
	ref: Type.Optional(
		Type.Object({
			title: text("Name of the reference"),
			url: text("Where it comes from"),
			kind: text("For example repository, paper or article"),
			retrieval: text("How it was fetched"),
			localPath: optional("Where it lies"),
			coverage: optional("What of it was read"),
			gaps: optional("What was not"),
		}),
	),
	subagent: Type.Optional(
		Type.Object({
			role: text("Its role"),
			name: text("Its name"),
			model: optional("provider/model"),
			sessionDir: optional("Where its session lies"),
		}),
	),
	checkpoint: Type.Optional(
		Type.Object({
			transition: oneOf(
				["plan-written", "review-consolidated", "implementation-review-configured", "implementation-round-finished", "completed"],
				"record-checkpoint: the step that is done",
			),
			planPath: optional("plan-written: the plan"),
			roundId: optional("review-consolidated: the round"),
			dispositionArtifact: optional("review-consolidated: the name of the document with the decisions on each finding, PLAN_v1_reviewer_comments.md"),
			terminationCondition: optional("implementation-review-configured: when to stop"),
			evidence: optional("completed: what proves it"),
		}),
	),
});

export const refine = Type.Object({
	role: oneOf(["reviewer", "criticizer"], "Who looks at the plan"),
	planPath: text("The plan file, relative to the workspace"),
	target: Type.Optional(oneOf(["plan", "implementation"], "What is judged: the plan (default), or what was built from it")),
	focus: optional("What to look at in particular"),
	reviewers: Type.Optional(Type.Integer({ minimum: 1, maximum: 3, description: "Reviewers side by side, each with a lens of its own" })),
	context: optional("What the reviewers must know that is not in the plan"),
	resumeRoundId: optional("Continue this round: only lanes without an answer run"),
	workdir,
});

export const analyzeRefs = Type.Object({
	refs: Type.Optional(
		Type.Array(
			Type.Object({
				id: text("Short id, unique in this call"),
				localPath: text("Directory of the downloaded reference"),
				title: optional("Its name"),
				url: optional("Where it comes from"),
				kind: optional("For example repository or paper"),
			}),
			{ minItems: 1, description: "The references; each gets a subagent, three at a time. Left out only with resumeRoundId" },
		),
	),
	context: optional("What the target repository needs to learn from them"),
	resumeRoundId: optional("Continue this round: only references without an answer are analysed"),
	workdir,
});

export const askChoice = Type.Object({
	question: text("One question"),
	options: Type.Array(
		Type.Object({
			label: text("The choice in a few words"),
			description: optional("What it means"),
			recommended: Type.Optional(Type.Boolean({ description: "The one you would take" })),
		}),
		{ minItems: 1 },
	),
	allowOther: Type.Optional(Type.Boolean({ description: "Whether the user may answer in his own words (default true)" })),
	autoComplete: Type.Optional(
		Type.Boolean({ description: "Whether the user may let you choose from here on (default true); false where only he may decide" }),
	),
	questionId: optional("Stable id, so that a resumed session knows the answer"),
	purpose: optional("What the answer decides"),
	trailing: Type.Optional(oneOf(["auto-refine-loop"], "Offer the refine loop in place of auto-complete")),
	workdir,
});

export const executePlan = Type.Object({
	planPath: optional("The plan; the latest of the run by default"),
	workdir,
});

export const exitPlanMode = Type.Object({
	plan: text("The complete plan in Markdown, beginning with a # heading"),
});
