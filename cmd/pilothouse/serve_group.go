package main

// group runs parts of a program that live and end together: the first part that
// returns ends all others, and run returns when all have returned.
type group struct{ parts []part }

type part struct {
	run       func() error
	interrupt func() // makes run return; may be called after it has
}

func (g *group) add(run func() error, interrupt func()) {
	g.parts = append(g.parts, part{run, interrupt})
}

// run returns the first error that a part ended with. Interrupts come in the order in
// which the parts were added.
func (g *group) run() error {
	ended := make(chan error, len(g.parts))
	for _, p := range g.parts {
		go func() { ended <- p.run() }()
	}
	first := <-ended
	for _, p := range g.parts {
		p.interrupt()
	}
	for range len(g.parts) - 1 {
		if err := <-ended; first == nil {
			first = err
		}
	}
	return first
}
