package guard_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/supervisor/guard"
)

type row struct {
	line          int
	kind, command string
	want          guard.Decision
}

// rows reads a file of testdata; its first lines say what the columns are.
func rows(t testing.TB, name string) []row {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var rows []row
	scanner := bufio.NewScanner(file)
	for line := 1; scanner.Scan(); line++ {
		if strings.HasPrefix(scanner.Text(), "# ") {
			continue
		}
		columns := strings.SplitN(scanner.Text(), "\t", 3)
		if len(columns) != 3 {
			t.Fatalf("line %d has %d columns", line, len(columns))
		}
		rows = append(rows, row{line, columns[0], decode(t, columns[2]), guard.Decision(columns[1])})
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// decode undoes the escapes of a command in the table.
func decode(t testing.TB, text string) string {
	t.Helper()
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			b.WriteByte(text[i])
			continue
		}
		i++
		switch text[i] {
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case '\\':
			b.WriteByte('\\')
		case 'x', 'u':
			digits := map[byte]int{'x': 2, 'u': 4}[text[i]]
			code, err := strconv.ParseUint(text[i+1:i+1+digits], 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			b.WriteRune(rune(code))
			i += digits
		default:
			t.Fatalf("unknown escape in %q", text)
		}
	}
	return b.String()
}

func TestEveryCommandOfTheTableGetsItsVerdict(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		file     string
		policy   guard.Policy
		expected int // so that a table that is cut off does not pass
	}{
		{"shell.tsv", guard.Policy{}, 383},
		{"traps.tsv", guard.Policy{Workspace: "/w/repo"}, 1392},
	} {
		judged := rows(t, test.file)
		if len(judged) != test.expected {
			t.Errorf("%s has %d rows, want %d", test.file, len(judged), test.expected)
		}
		for _, row := range judged {
			got := test.policy.Shell(row.command)
			if got.Decision != row.want {
				t.Errorf("%s:%d (%s): %q is %s, want %s: %s", test.file, row.line, row.kind, row.command, got.Decision, row.want, got.Reason)
			}
			if again := test.policy.Shell(row.command); cmp.Diff(got, again) != "" {
				t.Errorf("%s:%d: %q has two verdicts", test.file, row.line, row.command)
			}
		}
	}
}

func TestEveryBlockSaysWhatWhyAndWhatInstead(t *testing.T) {
	t.Parallel()
	for _, row := range append(rows(t, "shell.tsv"), rows(t, "traps.tsv")...) {
		verdict := guard.Policy{Workspace: "/w/repo"}.Shell(row.command)
		if len(verdict.Segments) == 0 {
			t.Errorf("%q: no segments", row.command)
		}
		bad := 0
		for _, s := range verdict.Segments {
			if s.Decision == guard.Block {
				bad++
				if s.Reason == "" {
					t.Errorf("%q: segment %q is blocked without a reason", row.command, s.Text)
				}
			}
		}
		if verdict.Allowed() {
			if bad > 0 {
				t.Errorf("%q is allowed with %d blocked segments", row.command, bad)
			}
			continue
		}
		if bad == 0 {
			t.Errorf("%q is blocked without a blocked segment", row.command)
		}
		for _, want := range []string{"Blocked `", "exit_plan_mode", "/plan off"} {
			if !strings.Contains(verdict.Reason, want) {
				t.Errorf("%q: the reason lacks %q: %s", row.command, want, verdict.Reason)
			}
		}
		for _, r := range verdict.Reason {
			if r < ' ' || r == 0x202e || r == 0x200b {
				t.Errorf("%q: the reason repeats the hidden character %#U", row.command, r)
			}
		}
	}
}
