package proc

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func isCgroup2(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC
}

// newParentGroup makes the group that holds the groups of all children of one
// Spawner, beneath the group of this process. The error says why children have
// to do without.
func newParentGroup(owner Identity, serial int64) (group, error) {
	base, err := ownGroup()
	if err != nil {
		return group{}, err
	}
	if owner.PIDNamespace == "" || owner.StartTicks == 0 {
		return group{}, errors.New("this process cannot tell its own identity")
	}
	g := group{path: filepath.Join(base, fmt.Sprintf("%s.%d", ownerName(owner), serial))}
	if err := os.Mkdir(g.path, 0o755); err != nil {
		return group{}, fmt.Errorf("make a cgroup: %w", err)
	}
	if err := unix.Access(filepath.Join(g.path, "cgroup.kill"), unix.W_OK); err != nil {
		g.remove()
		return group{}, fmt.Errorf("use cgroup.kill: %w", err)
	}
	return g, nil
}

// child makes the group of one child.
func (g group) child(nonce string) (group, error) {
	path := filepath.Join(g.path, nonce)
	if err := os.Mkdir(path, 0o755); err != nil {
		return group{}, fmt.Errorf("make a cgroup: %w", err)
	}
	return group{path: path}, nil
}

// kill sends SIGKILL to every process in the group and in the groups below it,
// and returns those that were alive.
func (g group) kill() []int {
	if g.path == "" || g.empty() {
		return nil
	}
	pids := g.members()
	if err := os.WriteFile(filepath.Join(g.path, "cgroup.kill"), []byte("1"), 0); err != nil {
		return nil
	}
	return pids
}

// members lists the living processes in the group and the groups below it.
func (g group) members() []int {
	var pids []int
	_ = filepath.WalkDir(g.path, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil
		}
		text, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		for line := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(line); err == nil {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	return pids
}

// empty reports whether no process is left in the group; zombies do not count.
func (g group) empty() bool {
	if g.path == "" {
		return true
	}
	text, err := os.ReadFile(filepath.Join(g.path, "cgroup.events"))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return true
	}
	return strings.Contains(string(text), "populated 0")
}

// remove deletes the group and those below it; a group that still holds a process stays.
func (g group) remove() {
	if g.path == "" {
		return
	}
	entries, _ := os.ReadDir(g.path)
	for _, entry := range entries {
		if entry.IsDir() {
			group{path: filepath.Join(g.path, entry.Name())}.remove()
		}
	}
	_ = unix.Rmdir(g.path)
}

// ownGroup finds the folder of the cgroup v2 that this process is in, wherever
// the file system is mounted.
func ownGroup() (string, error) {
	root, mount, err := cgroup2Mount()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", fmt.Errorf("find own cgroup: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::")
		if !ok {
			continue
		}
		// The mount may show a part of the hierarchy only.
		within, err := filepath.Rel(root, path)
		if err != nil || within == ".." || strings.HasPrefix(within, "../") {
			return "", fmt.Errorf("own cgroup %s is outside of the mount at %s", path, mount)
		}
		return filepath.Join(mount, within), nil
	}
	return "", errors.New("this process is in no cgroup v2")
}

// cgroup2Mount reads where cgroup v2 is mounted, and which folder of the hierarchy is seen there.
func cgroup2Mount() (root, mount string, err error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", "", fmt.Errorf("find cgroup v2: %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// id parent major:minor root mountpoint options [optional…] - type source superoptions
		before, after, ok := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(before)
		if ok && len(fields) >= 6 && strings.HasPrefix(after, "cgroup2 ") {
			return unescapeMount(fields[3]), unescapeMount(fields[4]), nil
		}
	}
	return "", "", errors.New("no cgroup v2 is mounted")
}

// unescapeMount undoes the octal escapes of mountinfo.
func unescapeMount(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

// holdsSelf reports whether this process is in the group, or in one below it.
func (g group) holdsSelf() bool {
	own, err := ownGroup()
	return err == nil && g.path != "" && (own == g.path || strings.HasPrefix(own, g.path+"/"))
}

// leftGroups lists the parent groups beside which this process would make its own.
func leftGroups() []group {
	base, err := ownGroup()
	if err != nil {
		return nil
	}
	paths, _ := filepath.Glob(filepath.Join(base, ownerPrefix+"*"))
	groups := make([]group, len(paths))
	for i, path := range paths {
		groups[i] = group{path: path}
	}
	return groups
}
