package store

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ownerIdentity is pilothouse/owner.json: what tells an owner apart from a later
// process with the same id, and from one on another machine or in another container.
// The shared record has no room for it. It counts only for the record with its token.
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

func (d RunDir) identityPath() string { return filepath.Join(d.Dir, privateName, "owner.json") }

// identityOf returns the identity that belongs to the record; there is none for an
// owner that is no pilothouse.
func (d RunDir) identityOf(record OwnerRecord) (ownerIdentity, bool) {
	var identity ownerIdentity
	if err := readDocument(d.identityPath(), &identity); err != nil {
		return ownerIdentity{}, false
	}
	return identity, tokenPattern.MatchString(record.ProcessToken) && identity.Token == record.ProcessToken
}

func (d RunDir) writeIdentity(token string) error {
	here := thisMachine()
	identity := ownerIdentity{
		Schema: 1, Token: token, PID: os.Getpid(), StartTicks: inspectProcess(os.Getpid()).startTicks,
		BootID: here.bootID, PIDNamespace: here.pidNamespace, MachineID: here.machineID,
	}
	return writeDocument(d.identityPath(), identity)
}

// signOfLifePath is the file an owner holds a lock on for as long as it lives.
func (d RunDir) signOfLifePath(token string) string {
	return filepath.Join(d.Dir, privateName, "alive-"+token+".lock")
}

var tokenPattern = regexp.MustCompile(`^[0-9a-f]{32}$`)

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

// takeoverNote is owner.json.lock.
type takeoverNote struct {
	PID     int    `json:"pid"`
	TakenAt string `json:"takenAt"`
}

func newTakeoverNote() []byte {
	note, _ := json.Marshal(takeoverNote{PID: os.Getpid(), TakenAt: Stamp(time.Now())}) // two plain fields cannot fail
	return append(bytes.TrimSpace(note), '\n')
}
