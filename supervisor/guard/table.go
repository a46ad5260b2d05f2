package guard

import (
	"strings"
	"sync"
)

// effect is the worst that a command, or an option of it, does.
type effect uint8

const (
	reads    effect = iota
	writes          // changes files, processes, settings or the shell
	runs            // starts a command or code that is not judged
	networks        // opens the network
	reveals         // prints secrets, or is not what an inspection needs
)

func (e effect) String() string {
	return [...]string{"only reads", "changes something", "runs another command", "opens the network", "may reveal secrets"}[e]
}

// entry is what the table knows of a command, a subcommand or several that behave
// alike. Options that are in none of the lists block.
//
// A list holds options as they are typed: "-a" and "--all" take no value, "-n:" and
// "--lines:" need one, "-C?" and "--color?" may have one that is joined to them.
type entry struct {
	names  string // separated by blanks
	effect effect // if it is not reads, only probe passes
	why    string // completes "NAME …" for a command that is blocked

	// open commands only read, whatever options and operands they are given.
	open bool

	read, write, run, network string // lists of options by effect

	// abbreviations: a long option may be cut short (GNU).
	abbreviations bool
	// numbers: -5 is an option.
	numbers bool
	// leading: options end at the first operand.
	leading bool
	// raw: check sees all arguments as operands, since they follow rules of their own.
	raw bool
	// tame: none of its options writes, runs or opens anything, so that the names of
	// files may be taken for options.
	tame bool
	// atFile: an operand @FILE holds more arguments.
	atFile bool

	// need: at least one of these options has to be there.
	need string
	// lists: with one of these options, operands only narrow a listing; without
	// one of them operands counts.
	lists    string
	operands count
	// probe: allowed if one of these is the only argument.
	probe string
	// asks: allowed if one of these is the first argument.
	asks string
	// wraps: the operands are a command, which is judged. Before it come skip
	// operands of the wrapper's own.
	wraps bool
	skip  int

	// check judges what the lists cannot say.
	check func(*walker, *call) *objection

	subs []entry
	// alone: the command may be used without a subcommand.
	alone bool
	// aliases: a subcommand that is not in subs may be an alias.
	aliases bool

	once    sync.Once
	options map[string]option
}

// count is how many operands there may be.
type count uint8

const (
	anyNumber count = iota
	noOperand
	oneOperand
)

type arity uint8

const (
	none arity = iota
	required
	joined
)

type option struct {
	effect effect
	arity  arity
}

// spec is the parsed form of the four lists. Of two descriptions of one option the
// later counts, so that a list can be made from a shared one.
func (e *entry) spec() map[string]option {
	e.once.Do(func() {
		e.options = map[string]option{}
		for _, list := range []struct {
			effect  effect
			options string
		}{{reads, e.read}, {writes, e.write}, {runs, e.run}, {networks, e.network}} {
			for word := range strings.FieldsSeq(list.options) {
				o := option{effect: list.effect}
				switch word[len(word)-1] {
				case ':':
					word, o.arity = word[:len(word)-1], required
				case '?':
					word, o.arity = word[:len(word)-1], joined
				}
				e.options[word] = o
			}
		}
	})
	return e.options
}

func (e *entry) reason(name string) string {
	if e.why != "" {
		return name + " " + e.why
	}
	return name + " " + e.effect.String()
}

// stops tells whether options end at the first operand.
func (e *entry) stops() bool { return e.leading || e.wraps || e.subs != nil }

// index is the whole table by name.
var index = sync.OnceValue(func() map[string]*entry {
	byName := map[string]*entry{}
	for _, table := range [][]entry{readers, searchers, archivers, systems, developers, wrappers, builtins, changers} {
		for i := range table {
			for name := range strings.FieldsSeq(table[i].names) {
				byName[name] = &table[i]
			}
		}
	}
	byName["git"] = &git
	return byName
})

func lookup(name string) *entry { return index()[name] }

func (e *entry) sub(name string) *entry {
	for i := range e.subs {
		for known := range strings.FieldsSeq(e.subs[i].names) {
			if known == name {
				return &e.subs[i]
			}
		}
	}
	return nil
}
