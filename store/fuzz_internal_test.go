package store

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// stable checks that what was read once is written so that it reads the same.
func stable[T any](t *testing.T, value T, decode func([]byte) (T, error)) {
	t.Helper()
	first, err := encodeDocument(value)
	if err != nil {
		t.Fatal(err)
	}
	again, err := decode(first)
	if err != nil {
		t.Fatalf("cannot read what was written: %v\n%s", err, first)
	}
	second, err := encodeDocument(again)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Fatalf("not stable:\n%s\n%s", first, second)
	}
}

func FuzzCheckpoint(f *testing.F) {
	for _, seed := range []string{
		"", "{", "[]", "null", "{}", "\x00",
		`{"schema":1,"runId":"20260825T130000Z-t","revision":1,"generation":1,"updatedAt":"2026-08-25T13:00:00Z","phase":"planning","nextAction":"none","originWorkdir":"","workdir":"","worktreeRoot":"","commonDir":"","plan":null,"huge":{"a":[1.0]},"reviewRounds":[{"roundId":"r","role":"reviewer","target":"plan","focus":"","reviewers":1e0,"lanes":7,"consolidated":false,"startedAt":"2026-08-25T13:00:00Z"}],"execution":{"approval":null,"implStatus":{"b":"1","a":"\ud800"},"usage":{}}}`,
	} {
		f.Add([]byte(seed))
	}
	decode := func(data []byte) (cp Checkpoint, err error) {
		err = decodeDocument(data, &cp)
		return cp, err
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cp, err := decode(data)
		if err != nil {
			return
		}
		if err := cp.Validate(); err != nil {
			t.Fatal(err)
		}
		stable(t, cp, decode)
		clone, err := encodeDocument(cp.Clone())
		original, _ := encodeDocument(cp)
		if err != nil || !bytes.Equal(clone, original) {
			t.Fatalf("the clone differs: %v", err)
		}
	})
}

func FuzzConfig(f *testing.F) {
	for _, seed := range []string{"", "{", "[]", "null", "{}", `{"schema":1,"language":null,"x":[1.0],"reviewer":{"mode":"m","y":{}},"execution":{},"artifact_root":"docs/plans"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		config, err := decodeConfig(data)
		if err != nil {
			return
		}
		stable(t, config, decodeConfig)
		var before map[string]json.RawMessage
		if json.Unmarshal(data, &before) != nil {
			t.Fatalf("accepted %q", data)
		}
		after, _ := encodeDocument(config)
		for key := range before {
			if name, _ := json.Marshal(key); key != "execution" && !bytes.Contains(after, name) && !strings.ContainsAny(key, "<>&\u2028\u2029\ufffd") {
				t.Fatalf("lost %q in %s", key, after)
			}
		}
	})
}

func FuzzLedger(f *testing.F) {
	for _, seed := range []string{"", "\n", "{\"question\":\"a\"}\n{\"que", "{\"question\":\"a\"}{\"question\":\"b\"}\n", "\x00\x00", "[]\nnull\n"} {
		f.Add([]byte(seed))
	}
	decode := func(raw []byte) (string, bool) {
		var entry Decision
		if json.Unmarshal(raw, &entry) != nil {
			return "", false
		}
		return entry.Question, true
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before, err := scanLedger(bytes.NewReader(data), decode)
		if err != nil {
			t.Fatal(err)
		}
		// A good line after anything is found, and takes nothing away.
		after, err := scanLedger(bytes.NewReader(append(bytes.Clone(data), "\n{\"question\":\"last\"}\n"...)), decode)
		if err != nil || len(after) != len(before)+1 || after[len(before)] != "last" {
			t.Fatalf("got %q after %q, %v", after, before, err)
		}
	})
}
