package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// ownerIdentity is pilothouse/alive-<token>.json, the sign of life of an owner: it
// holds a lock on this file until it dies. The content tells the owner apart from a
// later process with the same id, and from one on another machine or in another
// container. The shared record has no room for it.
type ownerIdentity struct {
	Schema       int    `json:"schema"`
	Token        string `json:"token"`
	PID          int    `json:"pid"`
	StartTicks   string `json:"startTicks"`
	BootID       string `json:"bootId"`
	PIDNamespace string `json:"pidNamespace"`
	MachineID    string `json:"machineId"`
	Extra        Extra  `json:"-" later:"*"`
}

// signOfLifePath is the file an owner holds a lock on for as long as it lives.
func (d RunDir) signOfLifePath(token string) string {
	return filepath.Join(d.Dir, privateName, signPrefix+token+signSuffix)
}

// The suffix is not .lock: people delete lock files below .git to be rid of those of git.
const signPrefix, signSuffix = "alive-", ".json"

// identityOf returns the identity that belongs to the record; there is none for an
// owner that is no pilothouse. An error means that there is one which cannot be read.
func (d RunDir) identityOf(record OwnerRecord) (_ ownerIdentity, found bool, err error) {
	if !tokenPattern().MatchString(record.ProcessToken) {
		return ownerIdentity{}, false, nil
	}
	var identity ownerIdentity
	err = readDocument(d.signOfLifePath(record.ProcessToken), &identity)
	if errors.Is(err, fs.ErrNotExist) {
		return ownerIdentity{}, false, nil
	}
	return identity, err == nil && identity.Token == record.ProcessToken, err
}

// writeIdentity leaves the complete and durable sign of life of this process; who
// takes the lock on it comes next.
func (d RunDir) writeIdentity(token string) error {
	here := thisMachine()
	identity := ownerIdentity{
		Schema: 1, Token: token, PID: os.Getpid(), StartTicks: inspectProcess(os.Getpid()).startTicks,
		BootID: here.bootID, PIDNamespace: here.pidNamespace, MachineID: here.machineID,
	}
	return writeDocument(d.signOfLifePath(token), identity)
}

// clearDead removes the signs of life that nobody holds any more: those of owners
// that were killed before their record could be seen, or whose run was taken over.
// The lock of the run is held, so no owner is about to take the lock on its own. What
// cannot be removed is only litter.
func (d RunDir) clearDead(token string) {
	private := filepath.Join(d.Dir, privateName)
	entries, _ := os.ReadDir(private)
	for _, entry := range entries {
		name, sign := strings.CutPrefix(strings.TrimSuffix(entry.Name(), signSuffix), signPrefix)
		if !sign || name == token || !tokenPattern().MatchString(name) {
			continue
		}
		lock := flock.New(filepath.Join(private, entry.Name()), flock.SetFlag(os.O_RDWR))
		if free, err := lock.TryLock(); free && err == nil {
			_ = os.Remove(lock.Path())
		}
		_ = lock.Close()
	}
}

var tokenPattern = lazily(`^[0-9a-f]{32}$`)

// newToken returns a random UUID (version 4) without dashes.
func newToken() string {
	token := []byte(randomHex(16))
	token[12] = '4'
	token[16] = "89ab"[token[16]%4]
	return string(token)
}

// machine is where this process runs. The strings are empty when unknown.
type machine struct {
	host         string
	bootID       string
	pidNamespace string
	machineID    string
}

// processInfo is what can be seen of a process.
type processInfo struct {
	// exists is false for a zombie: it will never do anything again.
	exists bool
	// startTicks identifies the start exactly until the next boot; empty when unknown.
	startTicks string
	// started is the start by the wall clock; zero when unknown.
	started time.Time
}

// ownStart is the start of this process as ps prints it, or nil. It is asked once,
// so that all our records agree.
var ownStart = sync.OnceValue(func() *string {
	if start, ok := psStart(os.Getpid()); ok {
		return &start
	}
	return nil
})

const psPatience = 5 * time.Second

// psStart asks ps in the language and time zone of this process, as the other
// program does when it compares.
func psStart(pid int) (string, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), psPatience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ps", "-o", "lstart=", "-p", strconv.Itoa(pid)).Output()
	start := strings.TrimSpace(string(out))
	return start, err == nil && start != ""
}
