package guard_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sandboxVariable makes the test binary be the process inside the sandbox; its value
// is the world to work on.
const sandboxVariable = "PILOTHOUSE_TEST_GUARD_SANDBOX"

// commandTime is how long one command may take.
const commandTime = time.Second

// order is one command for a shell.
type order struct {
	Shell   string `json:"shell"`
	Command string `json:"command"`
}

// outcome is what one command did.
type outcome struct {
	// Changed are the paths that were made, changed or removed.
	Changed  []string `json:"changed"`
	TimedOut bool     `json:"timedOut"`
	Err      string   `json:"err"` // of the sandbox, not of the command
}

// sandbox is a process in namespaces of its own that runs commands one by one.
type sandbox struct {
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

// newSandbox starts a sandbox for a world, or skips the test where the machine does
// not allow one. It ends with the test, or with the end of its input if the test is
// killed.
func newSandbox(t *testing.T, w world) *sandbox {
	t.Helper()
	process := exec.Command("/proc/self/exe")
	process.Env = []string{sandboxVariable + "=" + w.dir, "PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	process.Stderr = os.Stderr
	process.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
	}
	if os.Geteuid() != 0 {
		process.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		process.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		process.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	in, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Skipf("this machine allows no namespaces: %v", err)
	}
	s := &sandbox{process: process, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		_ = in.Close() // the process ends at the end of its input
		_ = process.Wait()
	})
	if ready := s.run(t, order{"bash", "true"}); ready.Err != "" {
		t.Skipf("this machine allows no copy-on-write view: %s", ready.Err)
	}
	return s
}

func (s *sandbox) run(t *testing.T, o order) outcome {
	t.Helper()
	line, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.in.Write(append(line, '\n')); err != nil {
		t.Fatalf("the sandbox is gone before %q: %v", o, err)
	}
	answer, err := s.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("the sandbox is gone at %q: %v", o, err)
	}
	var done outcome
	if err := json.Unmarshal(answer, &done); err != nil {
		t.Fatal(err)
	}
	return done
}

// sandboxMain is the process inside. It makes the mounts of its namespace private
// before anything else, so nothing it does to them is seen outside.
func sandboxMain(world string) int {
	i := &inside{world: world, base: filepath.Join(world, "view")}
	setup := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if setup == nil {
		setup = unix.Mount("tmpfs", i.base, "tmpfs", 0, "size=256m")
	}
	if setup == nil {
		setup = i.fresh()
	}
	lines := bufio.NewReader(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var given order
		var done outcome
		if err := json.Unmarshal(line, &given); err != nil {
			done.Err = err.Error()
		} else if setup != nil {
			done.Err = setup.Error()
		} else {
			done = i.run(given)
		}
		if err := answers.Encode(done); err != nil {
			return 1
		}
	}
}

// inside is the state of the process in the sandbox.
type inside struct {
	world, base string
	views       int
	root        string            // what commands see as /
	uppers      map[string]string // where the changes below a path are collected
}

// fresh makes a new view: the machine and the world as they are, every change kept
// apart. The old view stays mounted until the sandbox ends.
func (i *inside) fresh() error {
	i.views++
	dir := filepath.Join(i.base, fmt.Sprint(i.views))
	i.root = filepath.Join(dir, "root")
	i.uppers = map[string]string{}
	if err := os.MkdirAll(i.root, 0o755); err != nil {
		return err
	}
	if err := i.overlay("/", dir, "machine"); err != nil {
		return err
	}
	if err := i.overlay(i.world, dir, "world"); err != nil {
		return err
	}
	if err := unix.Mount("proc", filepath.Join(i.root, "proc"), "proc", unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("mount proc: %w", err)
	}
	dev := filepath.Join(i.root, "dev")
	if err := unix.Mount("tmpfs", dev, "tmpfs", 0, "size=1m"); err != nil {
		return fmt.Errorf("mount dev: %w", err)
	}
	for _, name := range devices {
		path := filepath.Join(dev, name)
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			return err
		}
		if err := unix.Mount(filepath.Join("/dev", name), path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind device: %w", err)
		}
	}
	return nil
}

var devices = []string{"null", "zero", "full", "random", "urandom"}

func (i *inside) overlay(lower, dir, name string) error {
	upper, work := filepath.Join(dir, name), filepath.Join(dir, name+".work")
	for _, d := range []string{upper, work} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	target := filepath.Join(i.root, lower)
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", lower, upper, work)
	if err := unix.Mount("overlay", target, "overlay", 0, options); err != nil {
		return fmt.Errorf("mount overlay: %w", err)
	}
	i.uppers[lower] = upper
	return nil
}

// run lets a shell run one command in a process namespace of its own, so that nothing
// it starts outlives it.
func (i *inside) run(given order) outcome {
	var o outcome
	shell := exec.Command("/bin/"+given.Shell, "-c", given.Command)
	shell.Dir = filepath.Join(i.world, "repo")
	shell.Env = environ(i.world)
	shell.SysProcAttr = &syscall.SysProcAttr{Chroot: i.root, Cloneflags: syscall.CLONE_NEWPID}
	if err := shell.Start(); err != nil {
		return outcome{Err: err.Error()}
	}
	timer := time.AfterFunc(commandTime, func() { _ = shell.Process.Kill() })
	err := shell.Wait()
	o.TimedOut = !timer.Stop()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		o.Err = err.Error()
	}
	for lower, upper := range i.uppers {
		o.Changed = append(o.Changed, changes(lower, upper, i.world)...)
	}
	entries, err := os.ReadDir(filepath.Join(i.root, "dev"))
	if err != nil {
		o.Err = err.Error()
	}
	if len(entries) != len(devices) {
		o.Changed = append(o.Changed, fmt.Sprint("/dev: ", entries))
	}
	if len(o.Changed) > 0 {
		if err := i.fresh(); err != nil {
			o.Err = err.Error()
		}
	}
	return o
}

// changes lists what was collected below a path. A directory is there for what is in
// it, so it counts only if it is empty.
func changes(lower, upper, world string) []string {
	var changed []string
	_ = filepath.WalkDir(upper, func(path string, d fs.DirEntry, err error) error {
		if path == upper {
			return nil
		}
		if d != nil && d.IsDir() {
			if entries, err := os.ReadDir(path); err == nil && len(entries) > 0 {
				return nil
			}
		}
		if inner := filepath.Join(lower, strings.TrimPrefix(path, upper)); !tolerated(inner, world) {
			changed = append(changed, inner)
		}
		return nil
	})
	return changed
}

// tolerated are traces of reading: a place for temporary files where one came and
// went, the times of files that git keeps in its index, formatted manual pages, the
// counters of a Java machine.
func tolerated(path, world string) bool {
	switch path {
	case "/tmp", filepath.Join(world, "tmp"), filepath.Join(world, "repo/.git"), filepath.Join(world, "repo/.git/index"):
		return true
	}
	return strings.HasPrefix(path, "/var/cache/man/") || strings.HasPrefix(path, "/tmp/hsperfdata_")
}

func environ(world string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(world, "home"), "TMPDIR=" + filepath.Join(world, "tmp"),
		"USER=pilot", "LANG=C.UTF-8", "TERM=dumb", "GIT_OPTIONAL_LOCKS=0", "GIT_CONFIG_NOSYSTEM=1",
		"npm_config_logs_max=0", "npm_config_update_notifier=false", // npm keeps a log of every call in the home
		"RUSTUP_HOME=" + filepath.Join(os.Getenv("HOME"), ".rustup"), // a home without settings gets some
		"OPTS=--output=pwned", "OUT=pwned", "F=-delete", "EMPTY=", "X=a[$(touch pwned)]",
	}
}
