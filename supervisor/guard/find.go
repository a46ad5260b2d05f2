package guard

import (
	"path"
	"strings"
)

// The tests and actions of find that only read, by the number of their operands.
const (
	findNone = `( ) ! -not -a -and -o -or , -daystart -depth -d -follow -ignore_readdir_race -noignore_readdir_race -mount
		-noleaf -nowarn -warn -xdev -empty -executable -false -true -nogroup -nouser -readable -writable -ls -print -print0
		-prune -quit -help --help -version --version`
	findOne = `-maxdepth -mindepth -regextype -amin -anewer -atime -cmin -cnewer -ctime -fstype -gid -group -ilname -iname
		-inum -ipath -iregex -iwholename -links -lname -mmin -mtime -name -newer -path -perm -regex -samefile -size -type -uid
		-used -user -wholename -xtype -context -printf -newerat -newerBt -newerct -newermt -neweraa -neweraB -newerac -neweram
		-newerBa -newerBB -newerBc -newerBm -newerca -newercB -newercc -newercm -newerma -newermB -newermc -newermm`
	findRuns   = "-exec -execdir -ok -okdir"
	findWrites = "-delete -fprint -fprint0 -fprintf -fls"
)

// findExpression reads the command line of find: options, starting points, then an
// expression, in which every word has its fixed place.
func findExpression(_ *walker, c *call) *objection {
	rest := c.operands
	for len(rest) > 0 && oneOf(rest[0], "-H -L -P -O0 -O1 -O2 -O3") {
		rest = rest[1:]
	}
	for len(rest) > 0 {
		a := rest[0]
		rest = rest[1:]
		switch {
		case oneOf(a, findNone):
		case oneOf(a, findOne):
			if len(rest) == 0 {
				return object("find %s lacks its operand", a.text)
			}
			if rest[0].many && findWord(rest[0]) {
				return object("what find %s is given may become more words, and one of them an action", a.text).or("quote it")
			}
			rest = rest[1:]
		case oneOf(a, findRuns):
			return object("find %s runs another command", a.text).or("print what was found and look at it with another command")
		case oneOf(a, findWrites):
			return object("find %s writes or removes files", a.text).or("leave it out")
		case a.mayBeOption() && findWord(a):
			return object("%s is not known to be a test of find that only reads", name(a)).or("write a starting point as ./NAME")
		}
	}
	return nil
}

// findWord tells whether a word may become an action of find. A pattern can only
// become what it matches.
func findWord(a arg) bool {
	if a.literal == "" || a.split {
		return a.exact || a.mayBeOption()
	}
	if a.exact {
		return true
	}
	for _, action := range strings.Fields(findRuns + " " + findWrites) {
		if matched, err := path.Match(a.literal, action); matched || err != nil {
			return true
		}
	}
	return false
}
