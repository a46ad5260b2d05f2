package guard

// readers show files and texts, or compute from them. The options are those of
// Debian 12 (GNU coreutils, diffutils, util-linux, binutils, less, jq) and of the
// current releases of bat, eza and yq.
var readers = []entry{
	{names: `cat tac nl head tail wc rev cut paste join comm tr fold fmt pr expand unexpand column col colrm
		od hexdump hd strings cmp cksum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum sum
		base64 base32 basenc seq expr factor numfmt look tsort readelf`, open: true},
	{names: "ls dir vdir exa eza stat du df basename dirname realpath readlink pathchk namei getfacl lsattr", open: true},
	{
		names: "sort", abbreviations: true,
		read: `-b -d -f -g -i -M -h -n -R -r -V -c -C -m -s -u -z -k: -S: -t: -T: --ignore-leading-blanks --dictionary-order
			--ignore-case --general-numeric-sort --ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort
			--random-sort --random-source: --reverse --sort: --version-sort --batch-size: --check? --debug --files0-from:
			--key: --merge --stable --buffer-size: --field-separator: --temporary-directory: --parallel: --unique
			--zero-terminated --help --version`,
		write: "-o: --output:", run: "--compress-program:",
	},
	{
		names: "uniq", abbreviations: true, leading: true, operands: oneOperand,
		read: `-c -d -D -f: -i -s: -u -z -w: --count --repeated --all-repeated? --skip-fields: --group? --ignore-case
			--skip-chars: --unique --zero-terminated --check-chars: --help --version`,
	},
	{
		names: "shuf", abbreviations: true,
		read:  "-e -i: -n: -r -z --echo --input-range: --head-count: --random-source: --repeat --zero-terminated --help --version",
		write: "-o: --output:",
	},
	{
		names: "diff colordiff", abbreviations: true, numbers: true,
		read: `-q -s -c -C: -u -U: -e -n -y -W: -p -F: -t -T -r -N -x: -X: -S: -i -E -Z -b -w -B -I: -a -d -D:
			--normal --brief --report-identical-files --context? --unified? --ed --rcs --side-by-side --width: --left-column
			--suppress-common-lines --show-c-function --show-function-line: --label: --expand-tabs --initial-tab --tabsize:
			--suppress-blank-empty --recursive --no-dereference --new-file --unidirectional-new-file --ignore-file-name-case
			--no-ignore-file-name-case --exclude: --exclude-from: --starting-file: --from-file: --to-file: --ignore-case
			--ignore-tab-expansion --ignore-trailing-space --ignore-space-change --ignore-all-space --ignore-blank-lines
			--ignore-matching-lines: --text --strip-trailing-cr --ifdef: --line-format: --minimal --horizon-lines:
			--speed-large-files --color? --palette: --help --version`,
		run: "-l --paginate",
	},
	{
		names: "xxd", leading: true, operands: oneOperand,
		read:  "-a -autoskip -b -bits -C -c: -cols: -d -e -E -EBCDIC -g: -groupsize: -i -include -l: -len: -n: -o: -p -ps -plain -s: -seek: -u -h -v",
		write: "-r -revert",
	},
	{
		names: "iconv", abbreviations: true,
		read:  "-f: -t: -l -c -s --from-code: --to-code: --list --silent --verbose --help --version",
		write: "-o: --output:",
	},
	{
		names: "file",
		read: `-b -c -e: -E -f: -F: -h -i -k -l -L -m: -n -N -0 -P: -r -s -v --brief --checking-printout --exclude:
			--exclude-quiet: --extension --files-from: --separator: --mime --mime-type --mime-encoding --apple --keep-going
			--list --dereference --no-dereference --magic-file: --no-buffer --no-pad --print0 --parameter:
			--raw --special-files --help --version`,
		write: "-C --compile -p --preserve-date", run: "-z -Z --uncompress --uncompress-noreport -S --no-sandbox",
	},
	{
		names: "nm size", atFile: true,
		read: `-A -a -B -C -D -g -l -n -o -p -P -r -S -s -u -U -v -X -t -d -x --debug-syms --extern-only --line-numbers
			--numeric-sort --no-sort --portability --print-size --print-armap --reverse-sort --size-sort --undefined-only
			--defined-only --demangle? --dynamic --format: --radix: --with-symbol-versions --common --totals --help --version`,
		run: "--plugin:",
	},
	{
		names: "objdump", atFile: true,
		read: `-a -f -p -h -x -d -D -S -s -g -e -G -t -T -r -R -C -j: -l -F -w -z -M: --archive-headers --file-headers
			--private-headers --section-headers --headers --all-headers --disassemble? --disassemble-all --source --full-contents
			--debugging --stabs --syms --dynamic-syms --reloc --dynamic-reloc --section: --disassembler-options: --demangle?
			--line-numbers --wide --start-address: --stop-address: --no-show-raw-insn --help --version`,
		run: "--plugin:",
	},
	{
		names: "less", numbers: true, check: noPlus,
		read: `-a -A -c -C -d -e -E -f -F -g -G -i -I -J -m -M -n -N -q -Q -r -R -s -S -u -U -w -W -X -h: -j: -p: -x: -y: -z:
			--quit-at-eof --QUIT-AT-EOF --quit-if-one-screen --ignore-case --IGNORE-CASE --LINE-NUMBERS --line-numbers
			--RAW-CONTROL-CHARS --raw-control-chars --squeeze-blank-lines --chop-long-lines --no-init --pattern: --tabs: --version`,
		write: "-o: -O: --log-file: --LOG-FILE:", run: "-k: -t: -T: --lesskey-file: --lesskey-src: --tag: --tag-file:",
	},
	{names: "more", numbers: true, check: noPlus, read: "-d -l -e -f -p -c -s -u -n: --silent --logical --exit-on-eof --no-pause --print-over --clean-print --squeeze --plain --lines:"},
	{
		names: "bat batcat",
		read: `-A -p -l: -H: -n -r: -f -L -d -s -u -h -V --show-all --plain --language: --highlight-line: --file-name: --diff
			--diff-context: --tabs: --wrap: --terminal-width: --number --color: --italic-text: --decorations: --force-colorization
			--theme: --list-themes --style: --line-range: --list-languages --no-config --squeeze-blank --unbuffered --help --version
			--paging: -P --no-paging`,
		run: "--pager: -m: --map-syntax: --ignored-suffix: --generate-config-file --config-file --config-dir --cache-dir", check: batPages,
	},
	{
		names: "jq", check: jqProgram, tame: true,
		read: `-n -r -j -a -s -c -C -M -S -e -R -h -V --null-input --raw-output --join-output --raw-output0 --ascii-output --slurp
			--compact-output --color-output --monochrome-output --sort-keys --exit-status --raw-input --tab --indent: --unbuffered
			--stream --stream-errors --seq --arg: --argjson: --slurpfile: --rawfile: --args --jsonargs --help --version`,
		run: "-f: --from-file: -L: -l",
	},
	{
		names: "yq", check: yqProgram,
		read: `-r -P -C -M -c -j -N -n -e -o: -p: -I: --unwrapScalar? --prettyPrint --colors --no-colors --tojson --no-doc --null-input
			--exit-status --output-format: --input-format: --indent: --raw-output --compact-output --help --version -V`,
		write: "-i --inplace? --in-place -s: --split-exp:", run: "--from-file: --security-enable-system-operator?",
	},
	{
		names: "xmllint",
		read: `--format --noout --xpath: --html --pretty: --nonet --recover --huge --noblanks --nowarning --c14n --debug
			--encode: --version`,
		write: "-o: --output:", network: "--noent --xinclude --valid --postvalid --loaddtd --dtdattr --schema: --dtdvalid: --relaxng: --noxincludenode --path:",
		run: "--shell --catalogs --load-trace --schematron: --stream", check: localOperands,
	},
	{
		names: "sed", abbreviations: true, check: sedScript,
		read: `-n -e: -E -r -s -u -z --quiet --silent --debug --expression: --regexp-extended --separate --unbuffered
			--null-data --zero-terminated --line-length: --posix --sandbox --follow-symlinks --help --version`,
		write: "-i? --in-place?", run: "-f: --file:",
	},
	{names: "awk gawk mawk nawk original-awk", leading: true, read: "-F: -v:", run: "-f: -i: -l: -E: -e: -o? -d? -p? -D? -W:", check: awkProgram},
	{names: "date", abbreviations: true, check: plusOnly,
		read:  "-d: -f: -I? -r: -R -u --date: --debug --file: --iso-8601? --resolution --rfc-email --rfc-3339: --reference: --utc --universal --help --version",
		write: "-s: --set:"},
	{names: "tree", operands: anyNumber,
		read: `-a -d -l -f -x -L: -P: -I: --gitignore --gitfile: --ignore-case --matchdirs --metafirst --prune --info --infofile:
			--noreport --charset: --filelimit: -q -N -Q -p -u -g -s -h --si --du -D --timefmt: -F --inodes --device -v -t -c -U -r
			--dirsfirst --filesfirst --sort: -i -A -S -n -C -X -J -H: -T: --nolinks --fromfile --help --version`,
		write: "-o: -R --output:"},
}
