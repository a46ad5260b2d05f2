package guard_test

import (
	"context"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// programs whose options are asked from themselves. Those that need a second to
// start, or a service, are left out: they would hardly get a turn.
var programs = strings.Fields(`cat head tail wc cut paste join comm tr fold fmt pr od hexdump strings cmp md5sum base64 basenc seq expr
	ls stat du df basename realpath readlink sort uniq shuf diff xxd iconv file nm size objdump readelf less more jq sed awk gawk mawk date tree
	grep egrep zgrep find fd fdfind rg ag bat batcat tar unzip zipinfo zcat bzcat xzcat gzip gunzip bzip2 xz zstd
	whoami id who uptime uname free lsblk ps mount lsof ss ip dmesg sysctl man hostname locale column tac nl look tsort
	echo printf test command timeout nice stdbuf ionice tee cp env xargs split rm truncate`)

var subcommands = strings.Fields(`log show diff diff-tree diff-index diff-files range-diff rev-list shortlog blame annotate grep status ls-files ls-tree
	rev-parse merge-base name-rev describe show-ref show-branch cherry count-objects check-ignore check-attr branch tag for-each-ref remote config
	reflog stash worktree notes submodule symbolic-ref cat-file hash-object archive whatchanged version bisect sparse-checkout
	commit checkout update-ref format-patch gc reset clean bundle help`)

var optionWord = regexp.MustCompile(`(?:^|[\s,\[|])(--?[A-Za-z0-9][A-Za-z0-9-]*)`)

func findTools(t *testing.T, w world) []tool {
	t.Helper()
	var tools []tool
	for _, name := range programs {
		tools = append(tools, tool{name, options(w, name, "--help")})
	}
	for _, sub := range subcommands {
		known := append(options(w, "git", sub, "-h"), options(w, "git", sub, "--git-completion-helper-all")...)
		if sub == "rev-list" || sub == "log" || sub == "show" || sub == "shortlog" || sub == "reflog" || sub == "diff-tree" || sub == "blame" {
			known = append(known, options(w, "git", "diff", "--git-completion-helper-all")...)
		}
		// git's commands count several times: they have the most to hide
		for range 2 {
			tools = append(tools, tool{"git " + sub, known})
		}
	}
	return append(tools, tool{"git", []string{"-C", "-c", "-p", "-P", "--no-pager", "--paginate", "--git-dir", "--exec-path", "--bare", "--work-tree"}})
}

func options(w world, name string, args ...string) []string {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	ask := exec.CommandContext(ctx, name, args...)
	ask.Dir = w.dir
	if name == "git" {
		ask.Dir = w.repo()
	}
	ask.Env = environ(w.dir)
	out, _ := ask.CombinedOutput() // some tell by a failure, some not at all
	var found []string
	for _, match := range optionWord.FindAllStringSubmatch(string(out), -1) {
		found = append(found, match[1])
	}
	return found
}
