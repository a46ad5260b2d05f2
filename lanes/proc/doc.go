// Package proc owns one child process tree: it starts the child, feeds it its
// task, ends it and reaps it, and leaves no descendant behind.
//
// A Spawner starts every child from one operating system thread. On Linux a
// child gets
//
//   - a session of its own whose controlling terminal is a pseudo-terminal on
//     descriptor 3 only, so the kernel hangs up on the tree when the
//     orchestrator dies;
//   - a cgroup v2 of its own where one is writable, so that the whole tree,
//     whatever sessions it opened, ends with one write;
//   - SIGKILL as parent-death signal;
//   - a marker in its environment, by which descendants are found where no
//     cgroup is to be had.
//
// A guard process (GuardMain) ends what is left when the orchestrator is gone,
// and Sweep does the same at the next start, from records on disk, when the
// guard is gone too. Elsewhere than on Linux a child has its own session and
// process group, the guard and the sweep; descendants that leave the group are
// not found there.
//
// No process gets a signal on the strength of its name or its number alone: it
// is an unreaped child of ours, a member of a cgroup that we made, a bearer of a
// child's random marker, or it has the recorded number and start time of this boot.
//
// What remains out of reach without a cgroup: a descendant that has left the
// session, has lost its parent and has emptied its environment. Wait is bounded
// all the same, and Exit.Leaked tells when such a process holds the output.
package proc
