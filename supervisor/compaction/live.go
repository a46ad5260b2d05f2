package compaction

// live is what the model sees of a branch at present, besides an earlier summary.
type live struct {
	messages []message
	// compactions are all compaction entries of the branch, oldest first.
	compactions []entry
}

// readLive selects the messages since the last compaction, those that it kept
// included, as Pi shows them to the model: with the edits of context_edit entries.
func readLive(entries []entry) live {
	var l live
	last := -1
	for i, e := range entries {
		if e.kind == "compaction" {
			l.compactions = append(l.compactions, e)
			last = i
		}
	}
	from := 0
	if last >= 0 {
		from = keptFrom(entries[:last], keptID(entries[last]))
	}
	edits := map[string]value{}
	for _, e := range entries[from:] {
		if e.kind == "context_edit" {
			edits[e.body.member("targetId").text()] = e.body.member("replacement")
		}
	}
	seen := make(map[string]bool, len(entries))
	for i, e := range entries {
		unique := e.id != "" && !seen[e.id]
		seen[e.id] = true
		if i < from {
			continue
		}
		m, ok := readMessage(e)
		if !ok {
			continue
		}
		m.unique = unique
		if edit, ok := edits[e.id]; ok {
			if edit.isNull() {
				continue
			}
			m.replaceContent(edit.member("content"))
		}
		l.messages = append(l.messages, m)
	}
	return l
}

// keptFrom is where the entries begin that a compaction behind them has kept. One
// that kept none, or names an entry that is not there, is followed by a new start.
func keptFrom(before []entry, id string) int {
	for i, e := range before {
		if e.id == id && id != "" {
			return i
		}
	}
	return len(before)
}

// keptID is the first entry that a compaction has kept; older ones name it in their
// details.
func keptID(compaction entry) string {
	if v := compaction.body.member("firstKeptEntryId"); v.isString() {
		return v.text()
	}
	for _, place := range []string{"details", "data"} {
		details := compaction.body.member(place)
		for _, holder := range []value{details, details.member("metrics")} {
			if v := holder.member("firstKeptEntryId"); v.isString() {
				return v.text()
			}
		}
	}
	return ""
}

// summary is that of the last compaction.
func (l live) summary() string {
	if len(l.compactions) == 0 {
		return ""
	}
	return l.compactions[len(l.compactions)-1].body.member("summary").text()
}
