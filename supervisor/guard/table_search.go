package guard

// searchers find files and lines.
var searchers = []entry{
	{names: "grep egrep fgrep which whereis locate plocate", open: true},
	{
		names: "zgrep zegrep zfgrep", numbers: true,
		read: "-i -n -c -l -L -h -H -v -E -F -o -w -x -q -s -a -e: -A: -B: -C: -m:",
	},
	{names: "find", raw: true, check: findExpression},
	{
		names: "fd fdfind",
		read: `-H -I -u -s -i -g -F -a -L -p -0 -d: -E: -t: -e: -S: -o: -c: -j: -1 -q -h -V --hidden --no-ignore --no-ignore-vcs
			--no-ignore-parent --no-global-ignore-file --unrestricted --case-sensitive --ignore-case --glob --regex
			--fixed-strings --and: --absolute-path --relative-path --follow --full-path --print0 --max-depth: --maxdepth:
			--min-depth: --exact-depth: --exclude: --prune --type: --extension: --size: --changed-within: --changed-before:
			--changed-after: --newer: --older: --owner: --ignore-file: --color: --threads: --max-results: --quiet
			--show-errors --base-directory: --path-separator: --search-path: --strip-cwd-prefix --one-file-system
			--no-follow --no-hidden --ignore --ignore-vcs --format: --hyperlink? --help --version`,
		run: "-x: --exec: -X: --exec-batch: -l --list-details --batch-size: --gen-completions?",
	},
	{
		names: "rg",
		read: `-A: --after-context: --auto-hybrid-regex -B: --before-context: --binary --block-buffered -b --byte-offset -s
			--case-sensitive --color: --colors: --column -C: --context: --context-separator: --no-context-separator -c --count
			--count-matches --crlf --no-crlf --debug --trace --dfa-size-limit: -E: --encoding: --no-encoding --engine:
			--field-context-separator: --field-match-separator: -f: --file: --files -l --files-with-matches --files-without-match
			-F --fixed-strings --no-fixed-strings -L --follow --no-follow -g: --glob: --glob-case-insensitive -h --help --heading
			-. --hidden --no-hidden --iglob: -i --ignore-case --ignore-file: --ignore-file-case-insensitive --include-zero -v
			--invert-match --json --line-buffered -n --line-number -x --line-regexp -M: --max-columns: --max-columns-preview
			-m: --max-count: -d: --max-depth: --maxdepth: --max-filesize: --mmap --no-mmap -U --multiline --multiline-dotall --no-config
			-I --no-filename --no-heading --no-ignore --ignore --no-ignore-dot --no-ignore-exclude --no-ignore-files
			--no-ignore-global --no-ignore-messages --no-ignore-parent --no-ignore-vcs -N --no-line-number --no-messages
			--no-pcre2-unicode --no-require-git --no-unicode -0 --null --null-data --one-file-system -o --only-matching
			--passthru --passthrough --path-separator: -P --pcre2 --pcre2-version -p --pretty -q --quiet --regex-size-limit: -e: --regexp:
			-r: --replace: -S --smart-case --sort: --sortr: --sort-files --stats --stop-on-nonmatch -a --text -j: --threads:
			--trim --no-trim -t: --type: --type-add: --type-clear: --type-list -T: --type-not: -u --unrestricted -V --version
			--vimgrep -H --with-filename -w --word-regexp --no-search-zip --no-pre`,
		run: "--pre: --pre-glob: --hostname-bin: -z --search-zip --hyperlink-format: --generate:",
	},
	{
		names: "ag",
		read: `-a -A: -B: -C: -c -f -F -g: -G: -H -i -l -L -m: -n -o -p: -Q -r -s -S -t -u -U -v -w -0 -W: --ackmate --after:
			--all-text --all-types --before: --break --nobreak --color --nocolor --column --context: --count --depth: --filename
			--nofilename --file-search-regex: --files-with-matches --files-without-matches --fixed-strings --follow --group
			--nogroup --heading --noheading --hidden --ignore: --ignore-case --ignore-dir: --invert-match --literal
			--max-count: --numbers --nonumbers --null --one-device --only-matching --path-to-ignore: --print-all-files
			--print-long-lines --recurse --norecurse --search-binary --silent --smart-case --case-sensitive --stats
			--stats-only --unrestricted --vimgrep --width: --word-regexp --list-file-types --version --help`,
		run: "--pager: -z --search-zip -D --debug",
	},
	{
		names: "ack",
		read: `-A: -B: -C: -c -f -g -h -H -i -I -l -L -m: -n -o -Q -r -R -s -S -v -w -x -1 -k --after-context: --before-context:
			--context: --break --nobreak --color --nocolor --column --count --files-with-matches --files-without-matches --follow
			--group --nogroup --heading --noheading --ignore-case --ignore-dir: --ignore-file: --invert-match --literal --match:
			--max-count: --noenv --no-filename --with-filename --recurse --no-recurse --smart-case --sort-files --type: -t: -T:
			--word-regexp --help --version --noackrc`,
		run: "--pager: --ackrc: --output: --filter --files-from:",
	},
}
