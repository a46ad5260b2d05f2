package guard_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/supervisor/guard"
)

func TestEachSegmentIsJudgedByItself(t *testing.T) {
	t.Parallel()
	const ok = "only reads"
	for _, test := range []struct {
		command string
		want    []guard.Segment
	}{
		{"cd src && git status; git log | head", []guard.Segment{
			{"cd src", guard.Allow, ok}, {"git status", guard.Allow, ok}, {"git log", guard.Allow, ok}, {"head", guard.Allow, ok},
		}},
		{"git status && rm -rf x", []guard.Segment{
			{"git status", guard.Allow, ok}, {"rm -rf x", guard.Block, "rm removes files"},
		}},
		{"for f in a b; do cat $f > out; done", []guard.Segment{
			{"cat $f > out", guard.Block, "the redirection to out writes; let it print, or send it to /dev/null"},
		}},
		{"echo $(rm x)", []guard.Segment{
			{"echo $(rm x)", guard.Block, "what a command substitution prints is not known before it runs; run the inner command by itself and write its result out"},
			{"rm x", guard.Block, "rm removes files"},
		}},
		{"timeout 5 git push", []guard.Segment{{"timeout 5 git push", guard.Block, "git push opens the network"}}},
		{"sort --outp=x f", []guard.Segment{{"sort --outp=x f", guard.Block, "sort --output changes something; leave the option out"}}},
	} {
		if diff := cmp.Diff(test.want, guard.Policy{}.Shell(test.command).Segments); diff != "" {
			t.Errorf("%s: %s", test.command, diff)
		}
	}
}

func TestGitStaysInsideTheWorkspace(t *testing.T) {
	t.Parallel()
	policy := guard.Policy{Workspace: "/w/repo", Dir: "/w/repo/packages/core"}
	for command, want := range map[string]guard.Decision{
		"cd /w/repo && git status":                   guard.Allow,
		"cd /w/repo/packages && git log":             guard.Allow,
		"cd .. && git log":                           guard.Allow,
		"cd ../.. && git log":                        guard.Allow,
		"cd ../../.. && git log":                     guard.Block,
		"cd .. && cd .. && git log":                  guard.Block, // how far up the two lead depends on the order
		"cd /w/repo2 && git status":                  guard.Block,
		"cd /w/repo/../other && git status":          guard.Block,
		"cd /tmp && ls && cd - && git status":        guard.Block,
		"cd && git status":                           guard.Block,
		"cd $HOME && git status":                     guard.Block,
		"for d in a b; do cd $d; git status; done":   guard.Block,
		"git -C ../.. status":                        guard.Allow,
		"git -C ../../.. status":                     guard.Block,
		"git -C .. -C .. status":                     guard.Block,
		"git -C /w/repo/a log":                       guard.Allow,
		"git -C /w log":                              guard.Block,
		"cd /tmp && ls -la":                          guard.Allow,
		"(cd /tmp && ls); git log":                   guard.Block, // told apart by running only
		"cd \"a b\" && git log":                      guard.Allow,
		"cd -P src && git log":                       guard.Allow,
		"cd src && cd sub && git status && git diff": guard.Allow,
	} {
		if got := policy.Shell(command); got.Decision != want {
			t.Errorf("%s is %s, want %s: %s", command, got.Decision, want, got.Reason)
		}
	}
}

func TestAdditionsOfTheProjectNeverOverrideTheTable(t *testing.T) {
	t.Parallel()
	policy := guard.Policy{Allow: []string{
		"mytool", "rm", "git", "bash", "python3.11", "gcc-12", "Remove-Item", "RM", "./x", "a b", "", "-x", "if", "ls", "env", "my.tool-2",
	}}
	for command, want := range map[string]guard.Decision{
		"mytool --any x | sort": guard.Allow, "my.tool-2": guard.Allow, "mytool > x": guard.Block, "mytool $(rm x)": guard.Block, "mytool; rm x": guard.Block,
		"timeout 5 mytool": guard.Allow, "rm x": guard.Block, "git push": guard.Block, "git log": guard.Allow, "bash -c ls": guard.Block,
		"python3.11 x.py": guard.Block, "gcc-12 x.c": guard.Block, "Remove-Item x": guard.Block, "RM x": guard.Block, "./x": guard.Block,
		"env": guard.Block, "othertool": guard.Block,
	} {
		if got := policy.Shell(command); got.Decision != want {
			t.Errorf("%s is %s, want %s: %s", command, got.Decision, want, got.Reason)
		}
	}
	want := map[string]string{
		"rm": "rm removes files", "git": "git is in the built-in table already", "ls": "ls is in the built-in table already",
		"bash": "bash runs a shell, whose commands are not judged", "python3.11": "python runs code", "gcc-12": "gcc writes what it builds",
		"Remove-Item": "PowerShell is out of scope", "RM": "rm removes files", "./x": "it is not a bare command name",
		"a b": "it is not a bare command name", "": "it is not a bare command name", "-x": "it is not a bare command name",
		"if": "it is a word of the shell", "env": "env prints the environment, which holds secrets, or runs its operand",
	}
	if diff := cmp.Diff(want, policy.Refused()); diff != "" {
		t.Error(diff)
	}
}

func TestHostileTextsAreBlocked(t *testing.T) {
	t.Parallel()
	for name, command := range hostile() {
		if got := (guard.Policy{}).Shell(command); got.Allowed() {
			t.Errorf("%s is allowed", name)
		} else if len(got.Reason) > 2000 {
			t.Errorf("%s: the reason has %d bytes", name, len(got.Reason))
		}
	}
}

// hostile are texts that are made to cost time or memory.
func hostile() map[string]string {
	return map[string]string{
		"a megabyte of one word":      "echo " + strings.Repeat("x", 1<<20),
		"a megabyte of commands":      strings.Repeat("ls;", 1<<20/3),
		"many commands":               strings.Repeat("ls;", 5000),
		"many arguments":              "echo " + strings.Repeat("x ", 10000),
		"nested substitutions":        strings.Repeat("echo $(", 2000) + strings.Repeat(")", 2000),
		"nested subshells":            strings.Repeat("( ", 3000) + "ls" + strings.Repeat(" )", 3000),
		"nested arithmetic":           "echo $((" + strings.Repeat("(", 3000) + "1" + strings.Repeat(")", 3000) + "))",
		"double parentheses":          strings.Repeat("((", 3000),
		"nested loops":                strings.Repeat("while ", 5000) + "ls",
		"nested tests":                strings.Repeat("if ", 10000),
		"negations":                   strings.Repeat("! ", 15000) + "ls",
		"nested times":                strings.Repeat("time ", 6000) + "ls",
		"nested backquotes":           strings.Repeat("`", 30000),
		"nested quotes":               "echo " + strings.Repeat(`"${x:-`, 4000),
		"braces that multiply":        "echo " + strings.Repeat("{a,b}", 30),
		"nested braces":               "echo " + strings.Repeat("{a,", 39) + "b" + strings.Repeat("}", 39) + strings.Repeat("{a,b,c,d}", 20),
		"a long sequence":             "sort {1..1000000000}",
		"pipes":                       strings.Repeat("cat|", 8000) + "cat",
		"logical operators":           strings.Repeat("ls&&", 8000) + "ls",
		"heredocs":                    strings.Repeat("cat <<E\nE\n", 3000),
		"unclosed heredocs":           strings.Repeat("cat <<E ", 3000),
		"a long sed script":           "sed '" + strings.Repeat("{", 10000) + "w x'",
		"a long awk program":          "awk '" + strings.Repeat("x / ", 5000) + "system(1)'",
		"a long test":                 "[ " + strings.Repeat("! ", 10000) + "-v x ]",
		"bracket expressions":         "sed 's/" + strings.Repeat("[[:", 8000) + "/x/'",
		"redirections":                "ls " + strings.Repeat(">/dev/null ", 2000) + "> x",
		"assignments":                 strings.Repeat("x=1 ", 7000) + "ls",
		"wrappers":                    strings.Repeat("nice ", 5000) + "ls",
		"dollars":                     "sort " + strings.Repeat("$x", 15000),
		"backslashes":                 "ls " + strings.Repeat(`\`, 30001),
		"case arms":                   "case x in " + strings.Repeat("x) rm y;; ", 3000) + "esac",
		"nested test parentheses":     "[[ " + strings.Repeat("( ", 38) + "a" + strings.Repeat(" )", 38) + " ]]",
		"nested else":                 strings.Repeat("if ls; then ls; else ", 1200) + "rm x" + strings.Repeat("; fi", 1200),
		"a chain of elif":             "if ls; then ls" + strings.Repeat("; elif ls; then ls", 1500) + "; fi",
		"loops in loops":              strings.Repeat("for x in a; do ", 1500) + "ls" + strings.Repeat("; done", 1500),
		"hidden in a long comment":    "ls #" + strings.Repeat("x", 30000) + "\nrm x",
		"array subscripts":            "echo ${a" + strings.Repeat("[0", 3000),
		"nested process substitution": "cat " + strings.Repeat("<(cat ", 39) + strings.Repeat(")", 39),
	}
}
