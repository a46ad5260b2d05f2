// Package guard is the policy of plan mode: reads pass, writes never (spec: plan
// mode). It judges a tool call from its name, its declared side effects and its
// arguments, and a shell command from its parse tree, and names for every block the
// segment, the cause and what to do instead.
//
// [Policy.Writes] is the milder gate of a run whose plan is being written: what is known
// to write is kept to the planning directories, into which references may be fetched.
//
// It is a guardrail against mistakes, not a sandbox. A command that it allows still
// runs with all the rights of the user, and what the user configured stays in force:
// a pager, a diff driver or an alias in the user's own git configuration, a changed
// PATH. What it does promise is that nothing passes that it does not understand.
//
// The verdict holds for bash and for a POSIX shell: where the two read a text
// differently and the difference could matter, the text is blocked. PowerShell is
// out of scope: its read cmdlets are unknown commands here, and so blocked like its
// writers.
//
// Everything is a function of the [Policy] and the call: no file is read and no
// process started. Only [Policy.Tool] looks at the file system, through the [Links]
// it is given, to see where a path to write really leads.
package guard
