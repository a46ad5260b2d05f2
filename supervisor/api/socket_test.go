package api_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pilothouse/supervisor/api"
)

// socketDir is a directory that is short enough for a socket and not there yet.
func socketDir(t *testing.T) string {
	t.Helper()
	base, err := os.MkdirTemp("", "ph")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	if err := os.Chmod(base, 0o755); err != nil { // another user may pass through it
		t.Fatal(err)
	}
	return filepath.Join(base, "run")
}

func listen(t *testing.T, path string) *api.Socket {
	t.Helper()
	socket, err := api.Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(socket.Close(), socket.Release()) })
	return socket
}

func TestTheSocketIsThisUsersAlone(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := socketDir(t)
	listen(t, filepath.Join(dir, "api.sock"))
	for path, want := range map[string]fs.FileMode{dir: 0o700, filepath.Join(dir, "api.sock"): 0o600, filepath.Join(dir, "api.sock.lock"): 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %#o, want %#o", path, info.Mode().Perm(), want)
		}
	}
}

func TestADirectoryThatOthersControlIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(t *testing.T, dir string)
		want    string
	}{
		"a symbolic link": {func(t *testing.T, dir string) {
			target := dir + "-real"
			if err := errors.Join(os.Mkdir(target, 0o700), os.Symlink(target, dir)); err != nil {
				t.Fatal(err)
			}
		}, "symbolic link"},
		"writable for all":       {mode(0o777), "other users can write"},
		"writable for the group": {mode(0o770), "other users can write"},
		"writable and sticky":    {mode(0o777 | fs.ModeSticky), "other users can write"},
		"a file":                 {func(t *testing.T, dir string) { write(t, dir, "") }, "not a directory"},
		"another user's": {func(t *testing.T, dir string) {
			asRoot(t)
			if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, strangerID, strangerID)); err != nil {
				t.Fatal(err)
			}
		}, "another user"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := socketDir(t)
			c.prepare(t, dir)
			socket := filepath.Join(dir, "api.sock")
			_, listening := api.Listen(t.Context(), socket)
			_, connecting := api.Connect(t.Context(), socket)
			for what, err := range map[string]error{"listen": listening, "connect": connecting} {
				refused, ok := errors.AsType[*api.DirectoryError](err)
				if !ok || refused.Path != dir {
					t.Fatalf("%s: %v", what, err)
				}
				contains(t, err.Error(), dir, c.want, "PILOTHOUSE_SOCKET")
			}
		})
	}
}

func mode(m fs.FileMode) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, m)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestASocketThatNobodyAnswersOnIsReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(socketDir(t), "api.sock")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false) // as after SIGKILL
	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Connect(t.Context(), path); !errors.Is(err, api.ErrNoDaemon) {
		t.Errorf("connecting to a stale socket: %v", err)
	}
	listen(t, path)
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

func TestASecondDaemonIsRefusedByName(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	_, err := api.Listen(t.Context(), s.socket)
	inUse, ok := errors.AsType[*api.InUseError](err)
	if !ok || inUse.PID != os.Getpid() || inUse.Socket != s.socket {
		t.Fatalf("a second daemon: %v", err)
	}
	contains(t, err.Error(), "serve --stop", fmt.Sprint(os.Getpid()))
	if _, err := s.client().Plans(t.Context(), s.session, plansInit); err != nil {
		t.Errorf("the first daemon was harmed: %v", err)
	}
}

func TestWhatIsNoSocketOfOursIsNotReplaced(t *testing.T) {
	t.Parallel()
	t.Run("a file", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(socketDir(t), "api.sock")
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, path, "precious")
		_, err := api.Listen(t.Context(), path)
		if err == nil {
			t.Fatal("it listens")
		}
		contains(t, err.Error(), path, "--socket")
		if data, err := os.ReadFile(path); err != nil || string(data) != "precious" {
			t.Errorf("the file is %q (%v)", data, err)
		}
	})
	t.Run("a program without the lock", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(socketDir(t), "api.sock")
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		other, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		if _, err := api.Listen(t.Context(), path); err == nil {
			t.Fatal("it listens")
		} else if _, ok := errors.AsType[*api.InUseError](err); !ok {
			t.Errorf("refused with %v", err)
		}
	})
	t.Run("a path that is too long", func(t *testing.T) {
		t.Parallel()
		_, err := api.Listen(t.Context(), filepath.Join(t.TempDir(), strings.Repeat("x", 120)))
		if err == nil {
			t.Fatal("it listens")
		}
		contains(t, err.Error(), "too long", "--socket")
	})
}

// fake is a daemon that answers every request the same.
func fake(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	path := filepath.Join(socketDir(t), "api.sock")
	socket := listen(t, path)
	server := &http.Server{Handler: answer, ReadHeaderTimeout: patience}
	served := make(chan error, 1)
	go func() { served <- server.Serve(socket) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return path
}

func TestAClientTellsWhyItCannotUseADaemon(t *testing.T) {
	t.Parallel()
	t.Run("there is none", func(t *testing.T) {
		t.Parallel()
		dir := socketDir(t)
		if _, err := api.Connect(t.Context(), filepath.Join(dir, "api.sock")); !errors.Is(err, api.ErrNoDaemon) {
			t.Errorf("no directory: %v", err)
		}
		mode(0o700)(t, dir)
		if _, err := api.Connect(t.Context(), filepath.Join(dir, "api.sock")); !errors.Is(err, api.ErrNoDaemon) {
			t.Errorf("no socket: %v", err)
		}
		if err := api.Stop(t.Context(), filepath.Join(dir, "api.sock")); !errors.Is(err, api.ErrNoDaemon) {
			t.Errorf("stop: %v", err)
		}
	})
	t.Run("another protocol", func(t *testing.T) {
		t.Parallel()
		path := fake(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"version":"9.9","protocol":99,"new":true}`))
		})
		_, err := api.Connect(t.Context(), path)
		if mismatch, ok := errors.AsType[*api.ProtocolError](err); !ok || mismatch.Version != "9.9" || mismatch.Protocol != 99 || mismatch.Own != api.Protocol {
			t.Fatalf("connected with %v", err)
		}
		contains(t, err.Error(), "9.9", "protocol 99", "serve --stop", "--local")
	})
	t.Run("silence", func(t *testing.T) {
		t.Parallel()
		path := fake(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := api.Connect(ctx, path)
		if _, ok := errors.AsType[*api.SilentError](err); !ok {
			t.Fatalf("connected with %v", err)
		}
		contains(t, err.Error(), path, "--local")
	})
	t.Run("nonsense", func(t *testing.T) {
		t.Parallel()
		path := fake(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusTeapot) })
		_, err := api.Connect(t.Context(), path)
		if _, ok := errors.AsType[*api.SilentError](err); !ok {
			t.Fatalf("connected with %v", err)
		}
	})
}

// The other user of the tests, and how the test binary learns to play him.
const (
	strangerID     = 65534
	strangerMarker = "PILOTHOUSE_TEST_STRANGER"
)

// stranger plays another user: "connect PATH" asks the daemon there for its health as
// a raw program, "listen PATH" makes a socket there and waits for its end.
func stranger() {
	what, path, _ := strings.Cut(os.Getenv(strangerMarker), " ")
	if what == "listen" {
		l, err := net.Listen("unix", path)
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := os.Chmod(path, 0o666); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("listening")
		conn, err := l.Accept()
		if err == nil {
			n, _ := conn.Read(make([]byte, 100))
			fmt.Printf("heard %d bytes\n", n)
		}
		return
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		fmt.Println("not connected:", err)
		return
	}
	if _, err := conn.Write([]byte("GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
		fmt.Println("not heard:", err)
		return
	}
	buf := make([]byte, 100)
	n, err := conn.Read(buf)
	fmt.Printf("answer %q, %v\n", buf[:n], err)
}

func asRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can be two users")
	}
}

// asStranger prepares this binary to run as the other user.
func asStranger(t *testing.T, words string) *exec.Cmd {
	t.Helper()
	asRoot(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(self) // it may lie where the other user cannot go
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(socketDir(t)+"-stranger", "program")
	if err := errors.Join(os.Mkdir(filepath.Dir(program), 0o755), os.WriteFile(program, data, 0o600), os.Chmod(program, 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Dir, cmd.Env = "/", []string{strangerMarker + "=" + words}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: strangerID, Gid: strangerID}}
	return cmd
}

func TestAnotherUserIsNotAnswered(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	cmd := asStranger(t, "connect "+s.socket)
	// The directory and the mode of the socket would keep him out before the check.
	if err := errors.Join(os.Chmod(s.dir, 0o755), os.Chmod(filepath.Dir(s.socket), 0o755), os.Chmod(s.socket, 0o666)); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if text := string(out); strings.Contains(text, "HTTP") || strings.Contains(text, "not connected") {
		t.Errorf("another user got: %s", text)
	}
	contains(t, s.log.String(), "connection refused", fmt.Sprint("user ", strangerID))
	if _, err := s.client().Plans(t.Context(), s.session, plansInit); err != nil {
		t.Errorf("this user is not served any more: %v", err)
	}
}

func TestAnotherUsersDaemonIsNotTrusted(t *testing.T) {
	t.Parallel()
	asRoot(t)
	dir := socketDir(t)
	mode(0o700)(t, dir)
	path := filepath.Join(dir, "api.sock")
	cmd := asStranger(t, "listen "+path)
	// He listens while the directory is his; then it becomes ours.
	if err := os.Chown(dir, strangerID, strangerID); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 100)
	n, err := out.Read(said)
	if err != nil || string(said[:n]) != "listening\n" {
		t.Fatalf("%s (%v)", said[:n], err)
	}
	if err := os.Chown(dir, 0, 0); err != nil {
		t.Fatal(err)
	}
	_, err = api.Connect(t.Context(), path)
	if refused, ok := errors.AsType[*api.PeerError](err); !ok || refused.UID != strangerID {
		t.Errorf("connected with %v", err)
	} else {
		contains(t, err.Error(), "PILOTHOUSE_SOCKET", "--local")
	}
	n, _ = out.Read(said)
	if string(said[:n]) != "heard 0 bytes\n" {
		t.Errorf("he %s", said[:n])
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
