package guard

// systems tell about the machine.
var systems = []entry{
	{names: `whoami id groups users who w uptime logname tty nproc arch uname free vmstat lscpu lsblk lsmod
		findmnt pgrep pidof pstree locale cal ncal last sleep`, open: true},
	{names: "hostname", operands: noOperand,
		read:  "-a -A -d -f -i -I -s -y --alias --all-fqdns --domain --fqdn --long --ip-address --all-ip-addresses --short --help --version",
		write: "-F: --file: -b --boot"},
	{names: "ps", raw: true, check: psFields},
	{names: "mount", operands: noOperand, read: "-l -V"},
	{names: "lsof", read: "-a -b -c: -C -d: -F? -g? -h -i? -l -n -N -o -P -p: -R -s? -t -T -u: -U -v -V -w -X"},
	{names: "ss", read: `-t -u -l -n -p -a -e -m -i -o -s -4 -6 -x -w -d -H -r -O -Z -0 --tcp --udp --listening --numeric --processes --all
		--extended --memory --info --options --summary --ipv4 --ipv6 --unix --no-header --resolve --oneline`,
		write: "-K --kill -D: --diag:", run: "-F: --filter: -N: --net:"},
	{names: "netstat", read: "-t -u -l -n -p -a -r -i -s -e -o -x -w -4 -6 -v -W --tcp --udp --listening --numeric --program --all --route --interfaces --statistics --wide"},
	{names: "ip", leading: true, check: ipShows,
		read: "-4 -6 -0 -br -brief -c -color -d -details -h -human -j -json -o -oneline -p -pretty -s -stats -t -timestamp -V",
		run:  "-b: -batch: -n: -netns: -all -force -rc:"},
	{names: "dmesg", read: `-d -e -f: -F: -k -K: -l: -L? -P -r -s: -S -T -t -u -x --color? --ctime --decode --facility: --file: --kernel --level: --nopager
		--notime --raw --reltime --syslog --time-format: --userspace --help --version`,
		write: "-C --clear -c --read-clear -D --console-off -E --console-on -n: --console-level:"},
	{names: "sysctl", check: sysctlReads, read: "-a -A -b -e -n -N -q -r: -x -X --all --ignore --names --values --pattern: --binary --deprecated",
		write: "-w --write -p? --load? -f --system"},
	{names: "crontab", need: "-l", operands: noOperand, read: "-l"},
	{names: "journalctl", numbers: true, read: `-a -b? -e -k -n? -o: -p: -q -r -t: -u: -x -S: -U: -g: --all --boot? --catalog --dmesg --grep: --identifier:
		--lines? --list-boots --no-full --no-hostname --no-pager --no-tail --output: --output-fields: --priority: --quiet --reverse
		--since: --system --unit: --until: --user --user-unit: --utc --disk-usage --facility: --case-sensitive? --version --help`,
		write: `--vacuum-time: --vacuum-size: --vacuum-files: --rotate --flush --sync --relinquish-var --smart-relinquish-var --setup-keys
		--update-catalog --cursor-file:`},
	{names: "systemctl", leading: true,
		read: "-a --all -l --full --no-pager --user --system -t: --type: --state: -p: --property: -q --quiet --plain --no-legend --version",
		subs: []entry{{names: `status show cat is-active is-enabled is-failed is-system-running list-units list-unit-files list-timers list-sockets
			list-dependencies list-jobs list-machines get-default`,
			read: "-a --all -l --full --no-pager --user -t: --type: --state: -p: --property: -n: --lines: -o: --output: -q --quiet --plain --no-legend --value --reverse"}}, alone: true},
	{names: "man", check: manPages, read: "-a -f -k -w -W -s: -S: --all --whatis --apropos --where --path --sections:",
		run: "-P: --pager: -H? --html? -C: --config-file: -p: --preprocessor: -T? --troff-device? -l --local-file -t --troff -X? --gxditview? -r: --prompt: -Z --ditroff -K --global-apropos -D --default"},
	{names: "apropos whatis", read: "-a -e -w -l -s: --and --exact --wildcard --long --sections:"},
}
