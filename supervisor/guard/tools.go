package guard

import (
	"strings"
)

// SideEffect is what a tool declares about itself.
type SideEffect string

// The side effects that a tool may declare (spec: plan mode). A tool that declares
// none of them is known by its name or not at all.
const (
	Undeclared SideEffect = ""
	NoEffect   SideEffect = "none"
	Workspace  SideEffect = "workspace"
	External   SideEffect = "external"
)

// ToolCall is a call as the session reports it before it is made, also one that is
// made from inside another tool.
type ToolCall struct {
	Name       string
	SideEffect SideEffect
	// Args are the arguments as decoded JSON.
	Args map[string]any
}

// The names of tools are compared in lower case, without what separates words.
var (
	// readTools of Pi, and those that plan mode itself is made of. The latter record
	// their results in the state of the run, never in the workspace.
	readTools = words(`read grep find ls exitplanmode plans refine analyzerefs askchoice`)
	// shellTools run their argument "command".
	shellTools = words(`bash shell sh terminal exec execute executecommand runcommand runshellcommand runterminalcmd
		runinterminal localshell shellcommand bashtool execcommand`)
	// pathTools are allowed inside the planning directories.
	pathTools = map[string][]string{
		"write": {"content"},
		"edit":  {"edits", "oldText", "newText"},
	}
	// mutators change files, whatever they declare.
	mutators = words(`write edit patch applypatch applydiff diff multiedit notebookedit editnotebook editnotebookcell writefile
		writetofile createfile createdirectory createdir mkdir deletefile deletedirectory delete remove removefile rm
		movefile move mv rename renamefile copyfile copy cp editfile updatefile replace replaceinfile searchreplace
		strreplace strreplaceeditor strreplacebasededittool texteditor insert insertcontent insertedit inserteditintofile
		appendfile append savefile save touch format formatfile fix refactor renamesymbol undo undoedit git commit push
		gitcommit gitpush gitadd gitcheckout install installpackage`)
	// launchers start what works outside of this gate.
	launchers = words(`task agent subagent spawnagent spawnsubagent spawnsession runagent dispatchagent delegate newtask
		runsubagent session fork background runinbackground python pythonexec runpython executecode runcode codeinterpreter
		repl javascript eval notebook powershell pwsh cmd browser computer computeruse writestdin killshell bashoutput`)
)

// toolName is the common form of a tool's name. Letters that only look like plain
// ones make it an unknown tool.
func toolName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r == '_', r == '-', r == ' ', r == '.':
			return -1
		default:
			return '?'
		}
	}, name)
}

// Tool judges a call of a tool while a plan is being made. Unknown tools block unless
// they declare that they have no side effect.
func (p Policy) Tool(call ToolCall) Verdict {
	name := toolName(call.Name)
	shown := quote(call.Name)
	switch call.SideEffect {
	case Undeclared, NoEffect:
	case Workspace, External:
		return p.blocked(shown, object("the tool declares %s side effects", call.SideEffect), nil)
	default:
		return p.blocked(shown, object("the tool declares the side effect %q, which is not known", string(call.SideEffect)), nil)
	}
	switch {
	case shellTools[name]:
		return p.shellTool(call)
	case pathTools[call.Name] != nil:
		return p.pathTool(call)
	case mutators[name]:
		return p.blocked(shown, object("the tool changes files").or("use write or edit for the plan itself"), nil)
	case launchers[name]:
		return p.blocked(shown, object("the tool starts work that this gate does not see"), nil)
	case readTools[name] && call.Name == strings.ToLower(call.Name):
		return allowed("the tool only reads", nil)
	case call.SideEffect == NoEffect:
		return allowed("the tool declares that it has no side effect", nil)
	default:
		return p.blocked(shown, object("the tool is not known and does not declare its side effects").or("let it declare that it has none, or use read, grep, find and ls"), nil)
	}
}

// shellTool judges the command of a tool that runs one. An argument that is not known
// could change where or how it runs.
func (p Policy) shellTool(call ToolCall) Verdict {
	var command string
	found := false
	for key, value := range call.Args {
		switch key {
		case "command", "cmd":
			text, ok := value.(string)
			if !ok || found {
				return p.blocked(quote(call.Name), object("the argument %s is not one command", quote(key)), nil)
			}
			command, found = text, true
		case "timeout", "timeoutMs", "timeout_ms", "description":
		default:
			return p.blocked(quote(call.Name), object("the argument %s is not known, and may change how the command runs", quote(key)).or("leave it out"), nil)
		}
	}
	if !found {
		return p.blocked(quote(call.Name), object("there is no argument command"), nil)
	}
	return p.Shell(command)
}

// pathTool lets write and edit work inside the planning directories.
func (p Policy) pathTool(call ToolCall) Verdict {
	path, ok := call.Args["path"].(string)
	if !ok {
		return p.blocked(quote(call.Name), object("there is no argument path"), nil)
	}
	for key := range call.Args {
		known := key == "path"
		for _, other := range pathTools[call.Name] {
			known = known || key == other
		}
		if !known {
			return p.blocked(quote(call.Name), object("the argument %s is not known, and may name another file", quote(key)).or("leave it out"), nil)
		}
	}
	if o := p.writable(path); o != nil {
		return p.blocked(quote(call.Name+" "+path), o, nil)
	}
	return allowed("the file is in a planning directory", nil)
}
