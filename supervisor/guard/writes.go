package guard

// Writes judges a call while a run is planned and its session is not in plan mode (spec:
// execution 5.7): the workspace keeps as it is outside of the planning directories, and
// everything else goes on. A tool that is not known to write is let through. For a
// session that works on the run, which strict tells, a shell only reads too, and nothing
// starts work that this gate does not see; others are not to be hindered by a run that
// is not theirs.
func (p Policy) Writes(call ToolCall, strict bool) Verdict {
	name := toolName(call.Name)
	switch {
	case shellTools[name] && strict:
		return p.shellTool(call)
	case pathTools[call.Name] != nil:
		return p.pathTool(call)
	case shellTools[name]:
		return allowed("the run is not that of the session", nil)
	case mutators[name]:
		return p.blocked(quote(call.Name), object("the tool changes files").or("use write or edit for the plan itself"), nil)
	case call.SideEffect == Workspace:
		return p.blocked(quote(call.Name), object("the tool declares %s side effects", call.SideEffect), nil)
	case launchers[name] && strict:
		return p.blocked(quote(call.Name), object("the tool starts work that this gate does not see"), nil)
	}
	return allowed("the tool is not known to write to the workspace", nil)
}
