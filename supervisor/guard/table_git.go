package guard

// Options of git 2.39 to 2.5x that only read. Git takes long options cut short, but
// which ones depends on its version, so they have to be written out. Not in the
// lists, since they run what is configured: --ext-diff, --textconv, --show-signature,
// --filters; since they write: --output, --remerge-diff; since more options could
// come in by it: --stdin.
const (
	gitDiffOptions = `-p -u -s -U: -W -t -r -R -a -b -w -z -c -m -B? -M? -C? -D -l: -O: -S: -G: -I: -X? -0 -1 -2 -3
		--patch --no-patch --unified: --raw --patch-with-raw --patch-with-stat --numstat --shortstat --dirstat? --cumulative
		--dirstat-by-file? --check --summary --name-only --name-status --stat? --stat-width: --stat-name-width:
		--stat-graph-width: --stat-count: --compact-summary --no-compact-summary --binary --full-index --no-full-index --color?
		--no-color --ws-error-highlight: --abbrev? --no-abbrev --src-prefix: --dst-prefix: --line-prefix: --no-prefix
		--default-prefix --inter-hunk-context: --function-context --no-function-context --output-indicator-new:
		--output-indicator-old: --output-indicator-context: --break-rewrites? --find-renames? --irreversible-delete
		--find-copies? --find-copies-harder --no-renames --rename-empty --no-rename-empty --follow --no-follow --minimal
		--ignore-all-space --ignore-space-change --ignore-space-at-eol --ignore-cr-at-eol --ignore-blank-lines
		--ignore-matching-lines: --indent-heuristic --no-indent-heuristic --patience --histogram --diff-algorithm: --anchored:
		--word-diff? --word-diff-regex: --color-words? --color-moved? --no-color-moved --color-moved-ws: --no-color-moved-ws
		--relative? --no-relative --text --no-text --exit-code --no-exit-code --quiet --ignore-submodules? --submodule?
		--ita-invisible-in-index --ita-visible-in-index --pickaxe-all --pickaxe-regex --rotate-to: --skip-to: --find-object:
		--diff-filter: --cc --combined-all-paths --no-ext-diff --no-textconv --diff-merges: --no-diff-merges --dd`
	gitDiffBad = "--ext-diff --textconv"

	gitLogOptions = gitDiffOptions + ` -n: -q -g -i -E -F -P -L: -h --max-count: --skip: --since: --after: --until: --before:
		--since-as-filter: --author: --committer: --grep: --grep-reflog: --all-match --invert-grep --regexp-ignore-case
		--extended-regexp --basic-regexp --fixed-strings --perl-regexp --merges --no-merges --min-parents: --max-parents:
		--no-min-parents --no-max-parents --first-parent --not --all --branches? --tags? --remotes? --glob: --exclude:
		--exclude-hidden: --reflog --alternate-refs --single-worktree --ignore-missing --bisect --cherry-mark --cherry-pick
		--cherry --left-only --right-only --left-right --walk-reflogs --merge --boundary --simplify-by-decoration --full-history
		--dense --sparse --simplify-merges --ancestry-path? --show-pulls --date-order --author-date-order --topo-order --reverse
		--no-walk? --do-walk --pretty? --format: --abbrev-commit --no-abbrev-commit --oneline --encoding: --expand-tabs?
		--no-expand-tabs --notes? --no-notes --show-notes? --relative-date --date: --parents --children --graph --no-graph
		--show-linear-break? --source --decorate? --no-decorate --decorate-refs: --decorate-refs-exclude: --clear-decorations
		--mailmap --no-mailmap --use-mailmap --no-use-mailmap --log-size --full-diff --root --no-show-signature
		--exclude-first-parent-only --no-quiet`
	gitLogBad = gitDiffBad + " --show-signature"

	// what narrows a listing of refs and makes it one
	gitRefFilters = `--list -l --contains --no-contains --with --without --merged --no-merged --points-at`
	gitRefOptions = `--list -l -i -v -q -a -r --contains? --no-contains? --with? --without? --merged? --no-merged? --points-at: --sort:
		--no-sort --format: --color? --no-color --column? --no-column --abbrev? --no-abbrev --ignore-case --verbose --all
		--remotes --omit-empty`
)

var git = entry{
	names: "git", probe: "--version -v --exec-path --html-path --man-path --info-path",
	read: `-C: -P --no-pager --no-optional-locks --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs
		--no-replace-objects --no-lazy-fetch --no-advice`,
	run:   "-c: --config-env: -p --paginate --exec-path? --git-dir: --work-tree: --namespace: --bare --attr-source: --super-prefix:",
	check: gitDirectory, aliases: true,
	subs: []entry{
		{names: "log whatchanged show", numbers: true, read: gitLogOptions, run: gitLogBad, write: "--output: --remerge-diff", check: gitFormats},
		{names: "diff", numbers: true, read: gitDiffOptions + " -q --cached --staged --merge-base --no-index --base --ours --theirs", run: gitDiffBad, write: "--output:", check: gitFormats},
		{names: "diff-tree diff-index diff-files", read: gitDiffOptions + " -v -q --cached --merge-base --root --no-commit-id --always --pretty? --format: --base --ours --theirs",
			run: gitLogBad, write: "--output:", check: gitFormats},
		{names: "range-diff", read: gitDiffOptions + " --creation-factor: --no-dual-color --left-only --right-only --notes? --no-notes", run: gitDiffBad, write: "--output:"},
		{names: "rev-list", numbers: true, read: gitLogOptions + " --count --objects --objects-edge --quiet --max-age: --min-age: --timestamp --header --no-object-names --object-names --in-commit-order --unpacked --disk-usage? --use-bitmap-index --no-commit-header --commit-header --filter: --no-filter --missing:",
			run: gitLogBad, write: "--output:", check: gitFormats},
		{names: "shortlog", read: gitLogOptions + " -s -n -e -c -w? --summary --numbered --email --group:", run: gitLogBad, write: "--output:", check: gitFormats},
		{names: "blame annotate", read: `-b -L: -l -t -S: -p -e -f -n -s -w -M? -C? -c -h --root --show-stats --porcelain --line-porcelain --incremental
			--encoding: --contents: --show-email --show-name --show-number --ignore-rev: --ignore-revs-file: --abbrev? --date: --since:
			--first-parent --reverse --color-lines --color-by-age --progress --no-progress --minimal`,
			run: gitDiffBad, write: "--output:"},
		{names: "grep", numbers: true, read: `-v -i -w -a -I -r -E -G -F -P -n -h -H -l -L -z -o -c -C: -B: -A: -p -W -f: -e: -q -m: --cached --no-index
			--untracked --exclude-standard --no-exclude-standard --recurse-submodules --no-recurse-submodules --invert-match --ignore-case --word-regexp --text
			--recursive --no-recursive --max-depth: --extended-regexp --basic-regexp --fixed-strings --perl-regexp --line-number --no-line-number
			--column --full-name --files-with-matches --name-only --files-without-match --null --only-matching --count --color? --no-color
			--break --heading --context: --before-context: --after-context: --threads: --show-function --function-context --and --or --not
			--quiet --all-match --max-count: --no-textconv`, run: "-O? --open-files-in-pager? --textconv --ext-grep"},
		{names: `status ls-files ls-tree rev-parse merge-base name-rev describe show-ref show-branch cherry count-objects check-ignore
			check-attr check-mailmap check-ref-format version`, open: true},
		{names: "branch", lists: gitRefFilters, operands: noOperand, read: gitRefOptions + " --show-current", check: gitFormats,
			write: "-d -D -m -M -c -C -f -t? -u: --delete --move --copy --force --track? --no-track --set-upstream --set-upstream-to: --unset-upstream --edit-description --create-reflog --no-list --recurse-submodules"},
		{names: "tag", lists: gitRefFilters + " -n", operands: noOperand, check: gitFormats,
			read:  gitRefOptions + " -n?",
			write: "-a -s -u: -f -d -m: -F: -e --annotate --sign --local-user: --force --delete --message: --file: --edit --create-reflog",
			run:   "-v --verify"},
		{names: "for-each-ref", read: gitRefOptions + " -s -p --shell --perl --python --tcl --count: --exclude: --include-root-refs", check: gitFormats},
		{names: "remote", read: "-v --verbose", alone: true, subs: []entry{{names: "get-url", read: "--push --all"}}},
		{names: "config", leading: true, check: gitConfig,
			read: `-l -z -f: --list --get --get-all --get-regexp --get-urlmatch --get-color --get-colorbool --name-only --show-origin
				--show-scope --global --system --local --worktree --file: --blob: --type: --bool --int --bool-or-int --bool-or-str --path
				--expiry-date --null --includes --no-includes --default: --all --regexp --value: --fixed-value --url:`,
			write: "-e --edit --add --replace-all --unset --unset-all --rename-section --remove-section"},
		{names: "reflog", numbers: true, read: gitLogOptions, run: gitLogBad, write: "--output:", check: gitReflog},
		{names: "stash", why: "saves the changes away unless it lists or shows", subs: []entry{
			{names: "list", numbers: true, read: gitLogOptions, run: gitLogBad, write: "--output:", check: gitFormats},
			{names: "show", numbers: true, read: gitDiffOptions + " --include-untracked --only-untracked --no-include-untracked", run: gitDiffBad, write: "--output:"},
		}},
		{names: "worktree", subs: []entry{{names: "list", read: "-v -z --verbose --porcelain"}}},
		{names: "notes", alone: true, read: "--ref:", subs: []entry{{names: "list show", read: ""}}},
		{names: "submodule", alone: true, read: "-q --quiet --cached", subs: []entry{{names: "status", read: "--cached --recursive -q --quiet"}}},
		{names: "bisect", subs: []entry{{names: "log", read: ""}}},
		{names: "sparse-checkout", subs: []entry{{names: "list", read: ""}}},
		{names: "symbolic-ref", operands: oneOperand, read: "-q --quiet --short --recurse --no-recurse", write: "-d --delete -m:"},
		{names: "cat-file", read: "-p -t -s -e -z -Z --batch? --batch-check? --batch-all-objects --buffer --follow-symlinks --unordered --allow-unknown-type --mailmap --no-mailmap --use-mailmap --no-use-mailmap",
			run: "--textconv --filters --path:"},
		{names: "hash-object", read: "-t: --stdin --stdin-paths --no-filters --path: --literally", write: "-w"},
		{names: "archive", need: "-l --list", read: "-l --list", write: "-o: --output:", run: "--exec:", network: "--remote:"},
		{names: `add am apply checkout checkout-index cherry-pick clean commit commit-graph commit-tree fast-import filter-branch format-patch
			gc index-pack init maintenance merge merge-file merge-index merge-tree mktag mktree multi-pack-index mv pack-objects pack-redundant pack-refs
			prune prune-packed quiltimport read-tree rebase replace repack replay reset restore revert rm stage switch unpack-file unpack-objects
			update-index update-ref update-server-info write-tree bundle rerere fsck refs credential credential-store credential-cache`,
			effect: writes, why: "changes the work tree, the index, refs or objects"},
		{names: "fetch fetch-pack pull push send-pack clone ls-remote remote-http remote-https request-pull send-email imap-send svn p4 cvsimport daemon http-backend http-fetch http-push upload-pack receive-pack upload-archive lfs",
			effect: networks},
		{names: "difftool mergetool help web--browse instaweb gui citool gitk bugreport diagnose shell hook for-each-repo verify-commit verify-tag filter-repo interpret-trailers var annotate-tool",
			effect: runs, why: "runs another program"},
	},
}
