package guard

// archivers can list and print what they hold, and can do much else.
var archivers = []entry{
	{names: "tar gtar", raw: true, check: tarLists},
	{names: "unzip", raw: true, check: unzipLists},
	{names: "zipinfo", read: "-1 -2 -s -m -l -v -h -t -T -z -M -C"},
	{names: "zcat", read: "-f -q -v", abbreviations: true},
	{names: "bzcat xzcat lzcat zstdcat lz4cat"},
	{names: "gzip", check: oneMode, need: "-l --list -t --test -c --stdout", abbreviations: true,
		read: "-l --list -t --test -d --decompress --uncompress -c --stdout --to-stdout -q --quiet -v --verbose -f --force --help --version -V -h"},
	{names: "gunzip", check: oneMode, need: "-l --list -t --test -c --stdout", abbreviations: true,
		read: "-l --list -t --test -c --stdout -q --quiet -v --verbose"},
	{names: "bzip2 bunzip2", check: oneMode, need: "-t --test -c --stdout", read: "-t --test -c --stdout -d --decompress -q --quiet -v --verbose"},
	{names: "xz unxz lzma unlzma", check: oneMode, need: "-l --list -t --test -c --stdout",
		read: "-l --list -t --test -c --stdout -d --decompress -q --quiet -v --verbose --robot"},
	{names: "zstd unzstd", check: oneMode, need: "-l --list -t --test -c --stdout", read: "-l --list -t --test -c --stdout -d --decompress -q -v"},
}
