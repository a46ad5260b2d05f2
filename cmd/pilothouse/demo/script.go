package demo

import (
	"regexp"

	"pilothouse/actors"
	"pilothouse/integration/scriptedmodel"
)

// script is how the model answers one lane: a few calls of tools, then the
// answer in answers/<name>.md.
type script struct {
	name  string
	brief string // stands in the brief of this lane and of no other
	calls []scriptedmodel.ToolCall
}

var scripts = []script{
	{"correctness", "Review lens: " + actors.Lens("correctness"), []scriptedmodel.ToolCall{
		read(Plan), read("src/links.js"), grep("recent", "src"), read("src/server.js"),
	}},
	{"ordering", "Review lens: " + actors.Lens("ordering"), []scriptedmodel.ToolCall{
		ls("src"), read(Plan), read("src/config.js"), read("src/links.js"),
	}},
	{"verification", "Review lens: " + actors.Lens("verification"), []scriptedmodel.ToolCall{
		read(Plan), ls("test"), read("package.json"), read("src/server.js"),
	}},
	{"criticizer", "Task: criticize one plan ", []scriptedmodel.ToolCall{
		read("src/links.js"), grep("slug", "src"),
	}},
	analysis("ttlmap", read("README.md"), read("ttlmap.js")),
	analysis("tombstones", read("note.md"), read("numbers.csv")),
	analysis("field-issues", read("CHANGELOG.md"), read("issues.md")),
	analysis("gone-spec", read("spec.md"), read("examples.txt")),
}

func analysis(ref string, calls ...scriptedmodel.ToolCall) script {
	return script{ref, "Reference id: " + ref + "\n", append([]scriptedmodel.ToolCall{ls(".")}, calls...)}
}

func read(path string) scriptedmodel.ToolCall {
	return scriptedmodel.ToolCall{Name: "read", Args: map[string]string{"path": path}}
}

func ls(path string) scriptedmodel.ToolCall {
	return scriptedmodel.ToolCall{Name: "ls", Args: map[string]string{"path": path}}
}

func grep(pattern, path string) scriptedmodel.ToolCall {
	return scriptedmodel.ToolCall{Name: "grep", Args: map[string]string{"pattern": pattern, "path": path}}
}

// The pace of the model, slow enough to be watched. Lanes differ a little, as
// they do in life. Milliseconds.
const (
	thinkMs  = 500
	laneMs   = 130
	chunkMs  = 35
	answerIn = 60 // chunks
)

// Rules scripts the model server for the sample.
func Rules() ([]scriptedmodel.Rule, error) {
	var rules []scriptedmodel.Rule
	for i, s := range scripts {
		text, err := s.answer()
		if err != nil {
			return nil, err
		}
		before := thinkMs + i%3*laneMs
		var steps []scriptedmodel.Step
		for _, call := range s.calls {
			steps = append(steps, scriptedmodel.Step{BeforeMs: before, Tools: []scriptedmodel.ToolCall{call}})
		}
		steps = append(steps, scriptedmodel.Step{BeforeMs: before, Text: text, Chunks: answerIn, DelayMs: chunkMs})
		rules = append(rules, scriptedmodel.Rule{Match: regexp.QuoteMeta(s.brief), Steps: steps})
	}
	return rules, nil
}

func (s script) answer() (string, error) {
	text, err := files.ReadFile("answers/" + s.name + ".md")
	return string(text), err
}
