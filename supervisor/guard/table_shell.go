package guard

const cdNames = "cd"

// builtins are commands of the shell itself. Those that change how later commands
// are found or read are blocked, whatever they are given.
var builtins = []entry{
	{names: "echo true false : pwd type exit break continue help", open: true},
	{names: cdNames, read: "-L -P -e", operands: oneOperand},
	{names: "test [", raw: true, check: testOperators},
	{names: "printf", check: printfFormat, leading: true, write: "-v:"},
	{names: "read", check: readNames, read: "-r -s -d: -n: -N: -t: -p: -u:"},
	{names: "set", raw: true, check: setOptions},
	{names: "eval", effect: runs, why: "runs the text it is given"},
	{names: "exec", effect: runs, why: "replaces the shell"},
	{names: "builtin", effect: runs, why: "runs its operand"},
	{names: ". source", effect: runs, why: "runs a file in this shell"},
	{names: "trap", effect: runs, why: "runs a command later"},
	{names: "alias unalias hash enable", effect: writes, why: "changes what command names mean"},
	{names: "export declare typeset local readonly unset shopt let getopts mapfile readarray shift pushd popd dirs umask ulimit bind complete compgen compopt history fc",
		effect: writes, why: "changes the state of the shell"},
	{names: "kill wait jobs bg fg disown suspend logout times return caller", effect: writes, why: "is about running jobs, not about reading"},
	{names: "env printenv", effect: reveals, why: "prints the environment, which holds secrets, or runs its operand"},
}

// wrappers run the command they are given, which is judged like any other.
var wrappers = []entry{
	{names: "command", wraps: true, asks: "-v -V", read: "-p"},
	{names: "timeout", wraps: true, skip: 1, read: "-k: -s: -v --kill-after: --signal: --preserve-status --foreground --verbose"},
	{names: "nice", wraps: true, numbers: true, read: "-n: --adjustment:"},
	{names: "ionice", wraps: true, read: "-c: -n: -t --class: --classdata: --ignore"},
	{names: "stdbuf", wraps: true, read: "-i: -o: -e: --input: --output: --error:"},
	{names: "nohup setsid", effect: runs, why: "starts a command that outlives the call"},
	{names: "xargs parallel", effect: runs, why: "runs commands made from its input"},
	{names: "watch entr", effect: runs, why: "runs a command again and again"},
	{names: "flock script strace ltrace gdb perf valgrind", effect: runs, why: "writes a file and runs its operand"},
	{names: "sudo doas su runuser pkexec chroot unshare nsenter systemd-run machinectl firejail bwrap capsh setpriv",
		effect: runs, why: "runs a command with other rights"},
	{names: "busybox toybox taskset numactl chrt chronic unbuffer expect rlwrap faketime fakeroot proot setarch linux32 linux64 linux i386 x86_64 catchsegv cgexec prlimit choom dbus-run-session ssh-agent",
		effect: runs, why: "runs its operand"},
}
