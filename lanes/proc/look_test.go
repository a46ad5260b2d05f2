package proc_test

import (
	"testing"

	"pilothouse/lanes/proc"
)

// What is said of cgroups has to be what the children of a spawner meet.
func TestTheProblemWithCgroupsIsThatOfASpawner(t *testing.T) {
	t.Parallel()
	s := newSpawner(t, proc.Options{})
	spec, _ := stub(t)
	child := start(t, s, spec)
	_, _ = finish(t, child)
	if problem := proc.CgroupProblem(); (problem == nil) != (child.Identity().Cgroup != "") {
		t.Errorf("the problem is %v, a child had the cgroup %q", problem, child.Identity().Cgroup)
	}
}
