package guard

import "strings"

// The options of tar that are fine with a listing. Long options may be cut short.
var tarOptions = &entry{
	abbreviations: true,
	read: `-t --list -f: --file: -v --verbose -z --gzip --gunzip --ungzip -j --bzip2 -J --xz --lzip --lzma --lzop --zstd -Z --compress
		--uncompress -a --auto-compress -C: --directory: -O --to-stdout -n --seek -i --ignore-zeros -R --block-number -B
		--read-full-records -b: --blocking-factor: -p -P --absolute-names --exclude: --exclude-vcs --exclude-backups
		-X: --exclude-from: --wildcards --no-wildcards --wildcards-match-slash --no-wildcards-match-slash --anchored
		--no-anchored --ignore-case --no-ignore-case --strip-components: --transform: --xform: --full-time --numeric-owner
		--utc --quoting-style: --show-transformed-names --occurrence? --force-local --warning: --totals? --help --version
		--no-auto-compress --test-label --show-stored-names --show-defaults`,
	write: `-c --create -x --extract --get -r --append -u --update -A --catenate --concatenate --delete -d --diff --compare
		-g: --listed-incremental: -G --incremental --index-file: --remove-files --backup? --recursive-unlink --level:`,
	run: `-I: --use-compress-program: -F: --info-script: --new-volume-script: --to-command: --checkpoint? --checkpoint-action:
		--rsh-command: --rmt-command: -M --multi-volume -T: --files-from: --verbatim-files-from --no-verbatim-files-from --null
		-V: --label: -w --interactive --confirmation`,
}

// tarLists allows listing. The old form, letters without a dash, takes its values
// from the words that follow. A colon in the name of the archive means another host.
func tarLists(w *walker, c *call) *objection {
	args := c.operands
	if len(args) > 0 && args[0].exact && args[0].text != "" && args[0].text[0] != '-' {
		expanded := []arg{}
		rest := args[1:]
		for _, letter := range args[0].text {
			option := "-" + string(letter)
			expanded = append(expanded, arg{text: option, exact: true})
			if tarOptions.spec()[option].arity == required && len(rest) > 0 {
				expanded = append(expanded, rest[0])
				rest = rest[1:]
			}
		}
		args = append(expanded, rest...)
	}
	sorted, o := sortArgs(c.name, tarOptions, args)
	switch {
	case o != nil:
		return o
	case !sorted.has("-t --list"):
		return object("tar changes files or the archive unless it lists").or("use tar -tf")
	}
	for _, given := range sorted.options {
		if given.name != "-f" && given.name != "--file" {
			continue
		}
		host, _, remote := strings.Cut(given.value.text, ":")
		if remote && !strings.Contains(host, "/") || !given.value.exact && !strings.Contains(given.value.text, "/") {
			return object("tar takes what stands before a colon in %s for another host", name(given.value)).or("write ./NAME")
		}
	}
	return nil
}

// unzipLists allows listing, testing and printing. Letters may be switched off again
// by a dash behind them, and options may follow the archive, so all words count.
func unzipLists(_ *walker, c *call) *objection {
	lists, archive := false, false
	for _, a := range c.operands {
		switch {
		case !a.exact && a.mayBeOption():
			return object("what is not known before it runs may be an option of unzip").or("write it out")
		case !a.exact || a.text == "" || a.text[0] != '-':
			archive = true
		case len(a.text) == 1 || strings.Trim(a.text[1:], "lvtpzZ1qc") != "":
			return object("the option %s of unzip is not known to only read", quote(a.text)).or("use -l, -v, -t, -p or -Z")
		case !archive:
			lists = lists || strings.ContainsAny(a.text, "lvtpzZc")
		}
	}
	if !lists {
		return object("unzip extracts").or("use unzip -l or -p")
	}
	return nil
}
