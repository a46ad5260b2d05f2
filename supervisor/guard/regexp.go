package guard

import (
	"regexp"
	"sync"
)

// lazily compiles an expression at its first use: compiled at its start, those of all
// packages would take a short command a tenth of its time.
func lazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
