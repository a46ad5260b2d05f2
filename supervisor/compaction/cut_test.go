package compaction_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pilothouse/supervisor/compaction"
)

// turns are user turns of one short answer each: u-1 a-1 u-2 a-2 …
func turns(n int) (entries []object) {
	for i := range n {
		entries = append(entries, user(fmt.Sprintf("u-%d", i+1), fmt.Sprintf("task number %d", i+1)), assistant(fmt.Sprintf("a-%d", i+1), "done"))
	}
	return entries
}

func concat(parts ...[]object) (all []object) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func TestTheCutKeepsTheTurnsAskedFor(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("x", 300_000)
	plain := object{"smartKeepTail": false}
	for _, test := range []struct {
		name string
		request
		kept  string // first kept entry
		stats compaction.Stats
	}{
		{"one by default", request{entries: turns(2), settings: plain}, "u-2", compaction.Stats{
			RequestedKeepUserTurns: 1, KeptUserTurns: 1, TotalUserTurns: 2, SummarizedMessages: 2, KeptMessages: 2,
		}},
		{"none if asked for", request{entries: turns(2), instructions: "keep:0"}, "", compaction.Stats{
			KeptUserTurns: 0, TotalUserTurns: 2, SummarizedMessages: 4, CompactAll: true,
		}},
		{"more than there are: none", request{entries: turns(3), instructions: "keep:9"}, "", compaction.Stats{
			RequestedKeepUserTurns: 9, TotalUserTurns: 3, SummarizedMessages: 6, CompactAll: true, CompactAllFallback: true,
		}},
		{"all there are would leave nothing to summarise", request{entries: turns(3), instructions: "keep:3"}, "", compaction.Stats{
			RequestedKeepUserTurns: 3, TotalUserTurns: 3, SummarizedMessages: 6, CompactAll: true, CompactAllFallback: true,
		}},
		{"smart keep goes on while turns are small", request{entries: turns(3)}, "u-2", compaction.Stats{
			RequestedKeepUserTurns: 2, KeptUserTurns: 2, TotalUserTurns: 3, SummarizedMessages: 2, KeptMessages: 4,
			SmartKeepAdjusted: true, SmartFromKeep: 1,
		}},
		{"smart keep leaves an explicit number", request{entries: turns(3), instructions: "__pi_vcc__ keep:1"}, "u-3", compaction.Stats{
			RequestedKeepUserTurns: 1, KeptUserTurns: 1, TotalUserTurns: 3, SummarizedMessages: 4, KeptMessages: 2,
		}},
		{"smart keep ends where the tail gets large", request{
			entries: concat(turns(2), []object{user("u-3", huge), assistant("a-3", "read"), user("u-4", "and on"), assistant("a-4", "ok")}),
		}, "u-4", compaction.Stats{
			RequestedKeepUserTurns: 1, KeptUserTurns: 1, TotalUserTurns: 4, SummarizedMessages: 6, KeptMessages: 2,
		}},
		{"a single turn is cut inside", request{
			entries:     []object{user("u-1", "single"), assistant("a-1", huge), assistant("a-2", "end")},
			preparation: object{"tokensBefore": 200_000},
		}, "a-1", compaction.Stats{
			RequestedKeepUserTurns: 1, TotalUserTurns: 1, SummarizedMessages: 1, KeptMessages: 2, BudgetCut: "no_anchor",
		}},
		{"an oversized tail is cut inside", request{
			entries:     concat(turns(2), []object{user("u-3", "three"), assistant("a-3", huge)}),
			preparation: object{"tokensBefore": 250_000}, settings: plain,
		}, "a-3", compaction.Stats{
			RequestedKeepUserTurns: 1, TotalUserTurns: 3, SummarizedMessages: 5, KeptMessages: 1, BudgetCut: "oversized_tail",
		}},
		{"an oversized tail that was asked for stays", request{
			entries: concat(turns(2), []object{user("u-3", "three"), assistant("a-3", huge)}), instructions: "keep:1",
			preparation: object{"tokensBefore": 250_000},
		}, "u-3", compaction.Stats{
			RequestedKeepUserTurns: 1, KeptUserTurns: 1, TotalUserTurns: 3, SummarizedMessages: 4, KeptMessages: 2,
		}},
		{"a cut inside a turn never begins with a tool result", request{
			entries: []object{
				user("u-1", "single"), calling("c-1", call("t1", "read", object{"path": "x.go"})), result("r-1", "t1", huge), assistant("a-1", "after"),
			},
			preparation: object{"tokensBefore": 250_000},
		}, "a-1", compaction.Stats{
			RequestedKeepUserTurns: 1, TotalUserTurns: 1, SummarizedMessages: 3, KeptMessages: 1, BudgetCut: "no_anchor",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := test.compaction(t)
			if got.FirstKeptEntryID != test.kept {
				t.Errorf("first kept entry %q, want %q", got.FirstKeptEntryID, test.kept)
			}
			ignore := cmpopts.IgnoreFields(compaction.Stats{}, "KeptTokens")
			if diff := cmp.Diff(test.stats, got.Details.Stats, ignore); diff != "" {
				t.Errorf("stats (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACallIsNeverTornFromItsResult(t *testing.T) {
	t.Parallel()
	read := func(id string) object { return call(id, "read", object{"path": id + ".go"}) }
	before := []object{user("u-0", "begin with the work"), assistant("a-0", "begun")}
	for _, test := range []struct {
		name    string
		entries []object
		kept    string
		moved   bool
	}{
		{"a message of the user between parallel calls and results that follow late", []object{
			calling("c-1", read("t1"), read("t2")), result("r-1", "t1", "one"), user("u-1", "by the way"), result("r-2", "t2", "two"),
			user("u-2", "next"), assistant("a-2", "ok"),
		}, "u-2", false},
		{"the same without a later turn", []object{
			calling("c-1", read("t1"), read("t2")), result("r-1", "t1", "one"), user("u-1", "by the way"), result("r-2", "t2", "two"), assistant("a-1", "ok"),
		}, "a-1", true},
		{"a result without a call after the cut", []object{
			user("u-1", "go"), result("r-1", "nobody", "lost"), assistant("a-1", "hm"),
		}, "a-1", true},
		{"a result before its call", []object{
			user("u-1", "go"), result("r-1", "t1", "early"), calling("c-1", read("t1")), assistant("a-1", "hm"),
		}, "a-1", true},
		{"a call without a result", []object{
			user("u-1", "go"), calling("c-1", read("t1")), assistant("a-1", "hm"), assistant("a-2", "hm"),
		}, "a-1", true},
		{"a call without a result at the end", []object{
			user("u-1", "go"), assistant("a-1", "hm"), calling("c-1", read("t1")),
		}, "", true},
		{"two calls of one id", []object{
			user("u-1", "go"), calling("c-1", read("t1"), read("t1")), result("r-1", "t1", "x"), assistant("a-1", "hm"),
		}, "a-1", true},
		{"two results for one call", []object{
			user("u-1", "go"), calling("c-1", read("t1")), result("r-1", "t1", "x"), result("r-2", "t1", "x"), assistant("a-1", "hm"),
		}, "a-1", true},
		{"an id that is used again for another call", []object{
			calling("c-0", read("t1")), result("r-0", "t1", "x"),
			user("u-1", "go"), calling("c-1", read("t1")), result("r-1", "t1", "x"), assistant("a-1", "hm"),
		}, "u-1", false},
		{"a result of an answer that was aborted, which Pi does not send", []object{
			user("u-1", "go"), message("c-1", "assistant", []object{read("t1")}, object{"stopReason": "aborted"}), result("r-1", "t1", "x"),
			assistant("a-1", "hm"),
		}, "a-1", true},
		{"an aborted call without a result is no call", []object{
			user("u-1", "go"), message("c-1", "assistant", []object{read("t1")}, object{"stopReason": "aborted"}), assistant("a-1", "hm"),
		}, "u-1", false},
		{"what the user ran unseen does not come between", []object{
			user("u-1", "go"), calling("c-1", read("t1")),
			message("b-1", "bashExecution", nil, object{"command": "ls", "output": "x", "excludeFromContext": true}),
			result("r-1", "t1", "x"), assistant("a-1", "hm"),
		}, "u-1", false},
		{"a result that Pi hides from the model leaves its call without one", []object{
			user("u-1", "go"), calling("c-1", read("t1")), result("r-1", "t1", "x"), assistant("a-1", "hm"),
			entry("e-1", "context_edit", object{"targetId": "r-1", "replacement": nil}),
		}, "a-1", true},
		{"an entry whose id is another's cannot be kept from", []object{
			user("u-1", "go"), assistant("a-1", "hm"), user("u-0", "next"), assistant("a-2", "hm"),
		}, "a-2", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := request{entries: concat(before, test.entries), instructions: "keep:1"}
			got := r.compaction(t)
			if got.FirstKeptEntryID != test.kept || got.Details.Stats.MovedForTools != test.moved {
				t.Errorf("kept from %q, moved %v; want %q, %v", got.FirstKeptEntryID, got.Details.Stats.MovedForTools, test.kept, test.moved)
			}
			if problem := replay(r.entries, got).problem(); problem != "" {
				t.Error(problem)
			}
		})
	}
}
