package daemon_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pilothouse/supervisor"
	"pilothouse/supervisor/api"
)

// A session that was told to plan must not be let loose by a daemon that dies, and what
// it is told by stays out of its workspace.
func TestPlanModeOutlivesAKilledDaemon(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	daemon := s.serve()
	session := supervisor.Session{ID: "0197c9a1-6e1c-7000-8000-000000000001", Workdir: s.Dir}
	command := json.RawMessage(`{"toolName":"bash","toolCallId":"c1","input":{"command":"git log && make install"}}`)
	connect := func() *api.Client {
		t.Helper()
		client, err := api.Connect(t.Context(), s.Socket())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		return client
	}
	reason := func(client *api.Client) string {
		t.Helper()
		reply, err := client.Hook(t.Context(), session, "tool_call", command)
		if err != nil {
			t.Fatal(err)
		}
		if reply.Block == nil {
			return ""
		}
		return reply.Block.Reason
	}
	before := files(t, s.Dir)
	client := connect()
	if _, err := client.Converse(t.Context(), session, supervisor.Screen{Mode: "json"}, supervisor.KindCommand, "plan", json.RawMessage(`"on"`)); err != nil {
		t.Fatal(err)
	}
	daemon.Signal(syscall.SIGKILL)
	daemon.Wait()
	s.serve()
	client = connect()
	contains(t, reason(client), "make install", "/plan off")
	if after := files(t, s.Dir); after != before {
		t.Errorf("plan mode left in the workspace:\n%s\nwhere there was\n%s", after, before)
	}
	if _, err := client.Converse(t.Context(), session, supervisor.Screen{Mode: "json"}, supervisor.KindCommand, "plan", json.RawMessage(`"off"`)); err != nil {
		t.Fatal(err)
	}
	if why := reason(client); why != "" {
		t.Errorf("the user left plan mode, and it says: %s", why)
	}
}

// files lists what is below a directory.
func files(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		all = append(all, path)
		if os.IsNotExist(err) { // of git, in passing
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "\n")
}
