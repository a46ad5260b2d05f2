package extension_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/actors"
	"pilothouse/integration/piharness"
	"pilothouse/supervisor"
	"pilothouse/supervisor/api"
)

// The compiler holds every event, tool, key and method of Pi that the extension uses to
// the types that the pinned Pi is published with: what disappears there fails here.
func TestTheExtensionFitsTheTypesOfPi(t *testing.T) {
	t.Parallel()
	compiler := filepath.Join("..", "pi", "node_modules", "typescript", "bin", "tsc")
	if _, err := os.Stat(compiler); err != nil {
		t.Fatalf("the compiler is missing: run \"make pi\" first (%v)", err)
	}
	// The project of the tests has the extension in it, too.
	if out, err := exec.Command(piharness.NewPi(t)[0], compiler, "--project", "testdata").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestTheExtensionSpeaksTheProtocolOfTheDaemon(t *testing.T) {
	t.Parallel()
	wire, err := os.ReadFile(filepath.Join("..", "..", "deploy", "pi", "wire.ts"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`export const PROTOCOL = (\d+);`).FindSubmatch(wire)
	if found == nil {
		t.Fatal("wire.ts names no protocol")
	}
	if got := string(found[1]); got != strconv.Itoa(api.Protocol) {
		t.Errorf("the extension speaks protocol %s, the daemon %d", got, api.Protocol)
	}
}

// A parameter that the daemon does not know is refused there, so both must have the same.
func TestTheToolsHaveTheParametersOfTheDaemon(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.open("--no-session", "-e", probe(t))
	var tools map[string]json.RawMessage
	if err := json.Unmarshal([]byte(p.probe("tools", nil)), &tools); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		tool, path string
		params     any
		also       []string // of the tool alone
		not        []string // of the command line alone
	}{
		{tool: "plans", params: supervisor.PlansAction{}},
		{tool: "plans", path: "properties.decision", params: supervisor.DecisionParams{}},
		{tool: "plans", path: "properties.ref", params: supervisor.RefParams{}},
		{tool: "plans", path: "properties.subagent", params: supervisor.SubagentParams{}},
		{tool: "plans", path: "properties.checkpoint", params: supervisor.CheckpointParams{}},
		{tool: "refine", params: api.RefineParams{}, also: []string{"workdir"}, not: []string{"model", "runId", "limits"}},
		{tool: "analyze_refs", params: api.AnalyzeParams{}, also: []string{"workdir"}, not: []string{"model", "limits"}},
		{tool: "analyze_refs", path: "properties.refs.items", params: actors.Reference{}},
	} {
		schema := piharness.Parse(tools[one.tool])
		if one.path != "" {
			schema = schema.At(one.path)
		}
		got := schema.At("properties").Keys()
		want := slices.Concat(keys(reflect.TypeOf(one.params)), one.also)
		want = slices.DeleteFunc(want, func(name string) bool { return slices.Contains(one.not, name) })
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("parameters of %s %s (-daemon +tool):\n%s", one.tool, one.path, diff)
		}
	}
	p.Close()
}

// keys are the names of the fields of a struct in JSON.
func keys(of reflect.Type) []string {
	var names []string
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// probe is an extension of the tests that looks at Pi and ours from inside.
func probe(t testing.TB) string {
	t.Helper()
	return ofTests(t, "probe.ts")
}

// ofTests is an extension that is there for tests.
func ofTests(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// probe asks the probe and returns what it says.
func (p *session) probe(what string, params any) string {
	p.t.Helper()
	data, err := json.Marshal(params)
	if err != nil {
		p.t.Fatal(err)
	}
	p.Ask(map[string]any{"type": "prompt", "message": "/probe " + what + " " + string(data)})
	answer := p.Notice("probe " + what + " ")
	return strings.TrimPrefix(answer.At("message").Text(), "probe "+what+" ")
}
