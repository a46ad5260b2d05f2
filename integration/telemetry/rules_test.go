package telemetry_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const rulesDir = "../../deploy/prometheus"

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(rulesDir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// named are the words that a pattern's first group finds, each once, in order.
func named(pattern, text string) []string {
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found[m[1]] = true
	}
	return slices.Sorted(maps.Keys(found))
}

func TestEveryMetricOfTheRulesIsOneThatIsExposed(t *testing.T) {
	t.Parallel()
	metrics := exposed(t)
	recording := regexp.MustCompile(`\w+:\w+:\w+`) // what the rules record themselves
	for _, file := range []string{"rules.yml", "rules_test.yml"} {
		text := regexp.MustCompile(`(?m)^#.*$`).ReplaceAllString(read(t, file), "")
		text = recording.ReplaceAllString(text, "")
		if names := named(`\b(pilothouse_\w+)`, text); len(names) < 10 {
			t.Fatalf("only %v were found in %s", names, file)
		}
		for line := range strings.Lines(text) {
			for _, problem := range metrics.wrong(line) {
				t.Errorf("%s: %s", file, problem)
			}
		}
	}
}

func TestEveryRecordingOfTheRulesIsRecorded(t *testing.T) {
	t.Parallel()
	recorded := named(`record: (\S+)`, read(t, "rules.yml"))
	used := named(`(\w+:pilothouse_\w+:\w+)`, read(t, "rules.yml")+read(t, "rules_test.yml"))
	if diff := cmp.Diff(recorded, used); diff != "" {
		t.Errorf("(-recorded +used):\n%s", diff)
	}
}

// FaultJ118: an alarm that a gate in front of it keeps silent is none.
func TestFaultJ118EachAlertHasACaseInWhichItFiresAndOneInWhichItDoesNot(t *testing.T) {
	t.Parallel()
	rules, cases := read(t, "rules.yml"), read(t, "rules_test.yml")
	alerts := named(`alert: (\w+)`, rules)
	if diff := cmp.Diff(alerts, named(`exp_samples: \[\{labels: 'ALERTS\{alertname="(\w+)", alertstate="firing"`, cases)); diff != "" {
		t.Errorf("alerts with a case in which they fire (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(alerts, named(`'ALERTS\{alertname="(\w+)", alertstate="firing"\}', exp_samples: \[\]`, cases)); diff != "" {
		t.Errorf("alerts with a case in which they do not (-want +got):\n%s", diff)
	}
	for _, block := range strings.Split(cases, "  - name: ")[1:] {
		title, _, _ := strings.Cut(block, "\n")
		if !strings.Contains(block, `'up{job="pilothouse", instance="a"}', values: '1x200'`) {
			t.Errorf("case %q has no fresh heartbeat", title)
		}
	}
	for _, block := range strings.Split(rules, "- alert: ")[1:] {
		alert, _, _ := strings.Cut(block, "\n")
		for _, part := range []string{"severity: ", "summary: ", "description: "} {
			if !strings.Contains(block, part) {
				t.Errorf("alert %s has no %s", alert, strings.TrimSuffix(part, ": "))
			}
		}
	}
}

func TestFaultJ118TheRulesHoldInPrometheus(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not on PATH; it is in the package prometheus of Debian")
	}
	for _, args := range [][]string{{"check", "config", "prometheus.yml"}, {"check", "rules", "rules.yml"}, {"test", "rules", "rules_test.yml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = rulesDir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
