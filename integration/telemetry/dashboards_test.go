package telemetry_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

const grafanaDir = "../../deploy/grafana"

// dashboard is the part of a dashboard's file that says what it asks for and where it
// shows it.
type dashboard struct {
	UID, Title string
	Panels     []panel
	Templating struct {
		List []struct {
			Name, Type string
			Definition string // of a query variable
			Datasource datasource
		}
	}
}

type datasource struct{ Type, UID string }

type panel struct {
	ID         int
	Type       string
	Title      string
	Datasource datasource
	GridPos    struct{ X, Y, W, H int }
	Targets    []struct {
		Datasource    datasource
		Expr          string // of Prometheus
		Exemplar      bool
		QueryType     string // of Jaeger
		Service, Tags string
		Query         string
	}
}

func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(grafanaDir, "dashboards", "*.json"))
	if err != nil || len(files) < 2 {
		t.Fatalf("dashboards %v, %v", files, err)
	}
	all := map[string]dashboard{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(data, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[filepath.Base(file)] = d
	}
	return all
}

// queries are all that the dashboards ask Prometheus, by panel.
func queries(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for file, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				if target.Datasource.Type == "prometheus" {
					name := file + ": " + p.Title
					all[name] = append(all[name], target.Expr)
				}
			}
		}
	}
	return all
}

func TestEveryQueryOfTheDashboardsIsOfWhatIsExposed(t *testing.T) {
	t.Parallel()
	metrics := exposed(t)
	asked := queries(t)
	if len(asked) < 25 {
		t.Fatalf("only the panels %v ask for something", asked)
	}
	for name, exprs := range asked {
		for _, expr := range exprs {
			if expr == "" {
				t.Errorf("%s asks for nothing", name)
			}
			for _, problem := range metrics.wrong(regexp.MustCompile(`\binstance=~"\$instance",? ?`).ReplaceAllString(expr, "")) {
				t.Errorf("%s: %s", name, problem)
			}
		}
	}
	for file, d := range dashboards(t) {
		for _, v := range d.Templating.List {
			if label := regexp.MustCompile(`^label_values\((\w+), instance\)$`).FindStringSubmatch(v.Definition); v.Type == "query" && (label == nil || metrics[label[1]] == nil) {
				t.Errorf("%s: the variable %s is %q", file, v.Name, v.Definition)
			}
		}
	}
}

func TestEveryVariableOfAQueryIsOneOfItsDashboardOrOfGrafana(t *testing.T) {
	t.Parallel()
	for file, d := range dashboards(t) {
		known := []string{"__rate_interval"}
		for _, v := range d.Templating.List {
			known = append(known, v.Name)
		}
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				for _, use := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(fmt.Sprint(target, p.Title), -1) {
					if !slices.Contains(known, use[1]) {
						t.Errorf("%s: %s uses $%s", file, p.Title, use[1])
					}
				}
			}
		}
	}
}

func TestADashboardIsFoundShownAndLeadsToItsSources(t *testing.T) {
	t.Parallel()
	sources, err := os.ReadFile(filepath.Join(grafanaDir, "provisioning", "datasources", "pilothouse.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	uids := named(`(?m)^    uid: (\w+)$`, string(sources))
	seen := map[string]string{}
	for file, d := range dashboards(t) {
		if seen[d.UID] != "" || d.UID == "" || d.Title == "" {
			t.Errorf("%s and %s are called %q", file, seen[d.UID], d.UID)
		}
		seen[d.UID] = file
		ids := map[int]bool{}
		var above []panel
		for _, p := range d.Panels {
			if ids[p.ID] || p.ID == 0 {
				t.Errorf("%s: two panels have the id %d", file, p.ID)
			}
			ids[p.ID] = true
			if p.GridPos.W == 0 || p.GridPos.H == 0 || p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s: %s is at %+v", file, p.Title, p.GridPos)
			}
			for _, other := range above {
				a, b := p.GridPos, other.GridPos
				if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
					t.Errorf("%s: %s lies on %s", file, p.Title, other.Title)
				}
			}
			above = append(above, p)
			for _, target := range p.Targets {
				if target.Datasource != p.Datasource || !slices.Contains(uids, p.Datasource.UID) {
					t.Errorf("%s: %s asks %+v, provided are %v", file, p.Title, target.Datasource, uids)
				}
			}
		}
	}
}

// The attribute is what the spans of a run carry (integration/faults looks at them).
func TestOneRunIsFoundByTheAttributeOfItsSpans(t *testing.T) {
	t.Parallel()
	var searches []string
	for _, p := range dashboards(t)["run.json"].Panels {
		for _, target := range p.Targets {
			if target.QueryType == "search" {
				searches = append(searches, target.Tags)
			}
		}
	}
	if want := []string{`pilothouse.run.id="$run"`}; !slices.Equal(searches, want) {
		t.Errorf("searches for %q, want %q", searches, want)
	}
}
