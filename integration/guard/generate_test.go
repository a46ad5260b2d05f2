package guard_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// tool is a program, or a subcommand of one, with the options it says it has.
type tool struct {
	name    string
	options []string
}

// generator makes commands. Most are near the border between what only reads and
// what does not; many are nonsense, as a shell or a tool may take it.
type generator struct {
	*rand.Rand
	rows  []string // commands of the table
	words []string // their words
	tools []tool
}

func newGenerator(seed uint64, rows []string, tools []tool) *generator {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0)), rows: rows, tools: tools}
	for _, row := range rows {
		g.words = append(g.words, strings.Fields(row)...)
	}
	return g
}

func (g *generator) pick(from []string) string { return from[g.IntN(len(from))] }

// some joins up to most random pieces.
func (g *generator) some(most int, from []string, separator string) string {
	var parts []string
	for range 1 + g.IntN(most) {
		parts = append(parts, g.pick(from))
	}
	return strings.Join(parts, separator)
}

func (g *generator) command() string {
	command := g.simple()
	for range g.IntN(3) {
		if g.IntN(3) == 0 {
			command = g.around(command)
		}
	}
	return command
}

func (g *generator) simple() string {
	switch g.IntN(14) {
	case 0, 1, 2:
		return g.mutated()
	case 3, 4, 5, 6:
		return g.call()
	case 7, 8:
		return g.script()
	case 9:
		return g.some(8, shellPieces, "")
	case 10:
		return g.some(8, shellPieces, " ")
	case 11, 12:
		return g.hidden()
	default:
		return g.pick(g.rows)
	}
}

// mutated changes a row of the table at a few places.
func (g *generator) mutated() string {
	words := strings.Split(g.pick(g.rows), " ")
	for range 1 + g.IntN(3) {
		at := g.IntN(len(words))
		switch g.IntN(6) {
		case 0:
			words[at] = g.word()
		case 1:
			words = append(words[:at], append([]string{g.word()}, words[at:]...)...)
		case 2:
			if len(words) > 1 {
				words = append(words[:at], words[at+1:]...)
			}
		case 3:
			other := g.IntN(len(words))
			words[at], words[other] = words[other], words[at]
		case 4:
			words[at] += g.pick(shellPieces)
		case 5:
			if n := len(words[at]); n > 0 {
				cut := g.IntN(n)
				words[at] = words[at][:cut] + g.pick(shellPieces) + words[at][cut:]
			}
		}
	}
	return strings.Join(words, " ")
}

func (g *generator) word() string {
	switch g.IntN(4) {
	case 0:
		return g.pick(g.words)
	case 1:
		return g.option(g.tools[g.IntN(len(g.tools))])
	default:
		return g.pick(operands)
	}
}

// call gives a tool a few of its options and some operands.
func (g *generator) call() string {
	t := g.tools[g.IntN(len(g.tools))]
	parts := []string{t.name}
	for range g.IntN(5) {
		switch g.IntN(5) {
		case 0, 1, 2:
			parts = append(parts, g.option(t))
		default:
			parts = append(parts, g.pick(operands))
		}
	}
	return strings.Join(parts, " ")
}

func (g *generator) option(t tool) string {
	if len(t.options) == 0 || g.IntN(8) == 0 {
		return "-" + g.some(3, letters, "")
	}
	option := g.pick(t.options)
	switch g.IntN(5) {
	case 0:
		return option + "=" + g.pick(operands)
	case 1:
		return option + " " + g.pick(operands)
	case 2:
		if strings.HasPrefix(option, "--") && len(option) > 5 {
			return option[:4+g.IntN(len(option)-4)]
		}
		return option + g.pick(operands)
	case 3:
		if !strings.HasPrefix(option, "--") {
			if other := g.pick(t.options); !strings.HasPrefix(other, "--") {
				return option + strings.TrimPrefix(other, "-")
			}
		}
	}
	return option
}

// hidden puts something harmful where it may be data or code, as the quotes around
// it decide.
func (g *generator) hidden() string {
	return g.pick([]string{"echo ", "ls ", "cat f ", "git log ", "rg x ", "[[ ", "for x in ", "case x in ", "cat <<E ", "x=", ""}) +
		g.some(5, quotePieces, "") + g.pick(payloads) + g.some(5, quotePieces, "")
}

// script writes programs for the tools that have a language of their own.
func (g *generator) script() string {
	quote := g.pick([]string{"'%s'", "'%s'", "'%s'", "\"%s\""})
	switch g.IntN(7) {
	case 0, 1:
		return "sed " + g.pick([]string{"", "-n ", "-E ", "-e ", "-s ", "--posix "}) + fmt.Sprintf(quote, g.some(9, sedPieces, "")) + " " + g.pick(operands)
	case 2, 3:
		return "awk " + g.pick([]string{"", "-F: ", "-v x=1 "}) + fmt.Sprintf(quote, g.some(12, awkPieces, "")) + " " + g.pick(operands)
	case 4:
		return "find " + g.some(6, findPieces, " ")
	case 5:
		return g.pick([]string{"tar ", "tar ", "unzip ", "gzip ", "xz ", "bzip2 "}) + g.some(5, archivePieces, " ")
	default:
		return g.pick([]string{"test ", "[ ", "[[ ", "printf ", "read ", "set ", "ps ", "jq ", "date ", "cd "}) + g.some(4, builtinPieces, " ") + g.pick([]string{"", " ]", " ]]"})
	}
}

// around puts a command into a construct, or beside another one.
func (g *generator) around(command string) string {
	other := g.simple()
	return fmt.Sprintf(g.pick([]string{
		"%s; %s", "%s && %s", "%s || %s", "%s | %s", "%s\n%s", "%s |& %s", "(%s; %s)", "{ %s; %s; }", "if %s; then %s; fi",
		"for x in a -o f; do %s; %s; done", "for x in ./*; do %s \"$x\"; %s; done", "while %s; do %s; break; done",
		"case f in f) %s;; *) %s;; esac", "cat <<'EOF'\n%s\nEOF\n%s", "cat <<EOF\n%s\nEOF\n%s", "%s # %s", "! %s && %s",
		"timeout 1 %s; nice %s", "time %s; command %s", "LC_ALL=C %s; PATH=. %s", "PAGER=cat %s; GIT_PAGER=./x %s", "nice -n 1 %s; command -v %s", "%s 2>/dev/null; %s >&2", "%s <f; %s 2>&1", "x=f; %s $x; %s", "echo \"%s\"; %s",
		"echo '%s' %s", "echo $(%s) %s", "cd src && %s; %s", "[[ %s ]] && %s", "true || [[ %s && %s ]]", "%s -- %s", "%s {f,%s}",
	}), command, other)
}

var (
	letters  = strings.Split("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", "")
	operands = strings.Fields(`f a b in names.txt data.txt package.json f.yml . src docs src/main.go ./x ./evil x pwned out HEAD HEAD~1 main
		feat/x signed v1 v2 stash@{0} origin a.tar a.tgz a.gz a.zip list prog.sed prog.awk - -- 1 2 5 -1 +1 +x * *.txt ? -* [a-z] $F $OPTS $OUT
		"$F" "$X" "$x" $x '' "" -o --output=pwned --output -delete -exec -i --pre=.x user.name a.b c %G? --format=%G? %h >pwned >/dev/null
		2>&1 'a[$(touch',pwned)]' /tmp/pwned ~/pwned /etc/passwd /proc/self/status h:a.tar exec=./x 'touch pwned' {f,-o} .[0] 1,2p s/a/b/ @list`)
	shellPieces = append(strings.Split("' \" ` \\ $ ( ) { } [ ] ; & | < > # ! ~ * ? = , : / - + @ % ^", " "),
		" ", "\n", "\t", "\\\n", "$(", "${", "$((", "((", "[[", "]]", "))", "<<EOF\n", "\nEOF\n", "<<<", "<(", ">(", "&>", "|&", ">&", "<&", "2>", ">|", "<>",
		";;", "$'", "$\"", "\\'", "\\n", "ls", "cat f", "rm f", "touch pwned", "echo", "x", "f", "if", "then", "fi", "do", "done", "for x in", "case", "esac", "in",
		"while", "time", "!", "{a,b}", "x=", "x=f", "$x", "${x}", "${#x}", "git", "log", "&&", "||", "function", "eval", "EOF", "0", "1", "-o pwned")
	payloads    = []string{"rm f", "touch pwned", ";touch pwned;", "$(touch pwned)", "`touch pwned`", "\ntouch pwned\n", "|sh x", "&touch pwned", ">pwned", "a[$(touch pwned)]"}
	quotePieces = []string{"'", "'", "\"", "\"", "\\", "$'", "$\"", "#", " #", "\n", " ", "\\\n", "\\'", "\\\"", "\\\\", "${", "}", "${x", "$((", "))", "(", ")", "{", ",", "}", "[[ ", " ]]",
		"<<E\n", "\nE\n", "<<'E'\n", "<<-E\n", "\tE\n", "<<\\E\n", "<<<", ";", " ; ", "x", "=~ ", "esac", "x) ", "in ", "; do ls; done", ";; ", "-eq ", "|| ", "&& ", "$x", "`", "~", "*", "!", "@("}
	sedPieces = append(strings.Split(`s y w e p d n q r a i c b t : / / / , ; { } ! $ 1 2 x f g I M \ [ ] ^ = # | @ . * 0~2 +1 w\ pwned s/a/b/ /x/`, " "),
		" ", "\n", ";", "w pwned", "e touch pwned", "s/a/b/w pwned", "a\\\n", "a x", "}", "[/]", "\\/", "s/.*/touch pwned/e", "s,a,b,", "1,2p", "b\n", ":x ")
	awkPieces = append(strings.Split(`{ } ( ) [ ] $1 $0 x y NR 1 2 + - ++ -- * / / / % ^ ! ~ = == != < > >> | || && , ; ? : print printf getline if else while in return`, " "),
		" ", "\n", " ", "\"", "\"pwned\"", "\"touch pwned\"", "system(\"touch pwned\")", "/x/", "/[/]/", "\\", "#", "@", "BEGIN", "END", "print > \"pwned\"", "|&", "func", "\\\"")
	findPieces = strings.Fields(`. src f -name '*.go' *.go * -o -a ! \( \) -type f -print -print0 -delete -exec rm {} \; + -ok -fprint pwned -fls -printf '%p'
		-newer -prune -maxdepth 1 -size +1 -perm -u+x -H -L -P -O1 -D -files0-from list -quit -ls -regex .* -- "-delete" -d* "$F" $x -execdir ./x -empty`)
	archivePieces = strings.Fields(`-t -tf tf tvf tzf -xf xf cf -f a.tar a.tgz a.gz a.zip h:a.tar -l -lv -d -dc -c -t -k -p -v -q -Z -z -o -x pwned f -C src -I ./x
		-I./x --use-compress-program=./x --use-comp=./x --to-command=./x --checkpoint=1 --checkpoint-action=exec=./x -T list --index-file=pwned -g pwned
		-l- -n -j -O --to-stdout --list --file=a.tar --delete --occurrence=1 -U --info-script=./x -F./x -M --null -w -1 -9 -r -S .x --suffix .x`)
	builtinPieces = strings.Fields(`-v -f -n -z -R -eq = == != =~ -a -o ! ( ) < > && || a b f x "$x" $x "$X" 'a[$(touch pwned)]' x[0] 1 2 '%s' '%n' '%5d' '%s%n'
		'x' -r -p -- -e -u -o pipefail PATH IFS x y auxe aux -ef e . .env env '$ENV' -n -s now +%F -d -u 1010 src .. - ~ "" ] ]]`)
)
