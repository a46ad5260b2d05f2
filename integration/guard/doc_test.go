// Package guard_test lets bash and sh run what the plan-mode guard allows, and looks
// whether anything changed. Commands are made from a grammar and by mutating the
// table of known verdicts, drawn from a seed:
//
//	go test ./integration/guard -run Differential -v -args -for 10m -seed 7
//
// Each allowed command runs for at most a second in namespaces of its own, without
// network, on a copy-on-write view of the machine, so that a wrong verdict is seen
// and hurts nothing. That needs Linux and the right to make such a view; elsewhere
// the test is skipped.
package guard_test
