package guard

const versions = "--version -V -v"

// developers are tools of languages, packages and clusters. Most run code of the
// workspace, so only the question for their version passes.
var developers = []entry{
	{names: "node nodejs deno bun ruby perl php lua luajit julia", effect: runs, why: "runs code", probe: "--version -v"},
	{names: "python python2 python3", effect: runs, why: "runs code", probe: "--version -V"},
	{names: "java javac", effect: runs, why: "runs code", probe: "-version --version"},
	{names: "kotlin kotlinc scala groovy clojure clj elixir erl ghci ghc runghc Rscript R octave irb ipython tclsh wish guile racket sbcl swift osascript pwsh powershell cmd perl5 pypy pypy3 ts-node tsx nodemon dart",
		effect: runs, why: "runs code"},
	{names: "sh bash dash zsh ksh mksh ash fish csh tcsh rbash xonsh nu elvish", effect: runs, why: "runs a shell, whose commands are not judged", probe: "--version"},
	{names: "npx pnpx bunx uvx pipx yarn pnpm corepack pip pip3 uv poetry pipenv conda mamba gem bundle bundler rake composer mix rebar3 nvm pyenv rbenv asdf mise brew apt apt-get aptitude dpkg dnf yum rpm pacman apk snap flatpak nix nix-shell nix-env guix cpan cpanm luarocks cabal stack opam",
		effect: runs, why: "installs or runs packages"},
	{names: "make gmake cmake ninja tsc", effect: runs, why: "runs what the workspace tells it to, and writes its results", probe: "--version"},
	{names: "meson bazel buck gradle gradlew mvn ant sbt msbuild dotnet scons waf just task tox nox pytest jest vitest mocha eslint prettier webpack vite rollup esbuild phpunit rspec rubocop black ruff mypy flake8 pylint isort pre-commit husky lint-staged turbo nx lerna rush",
		effect: runs, why: "runs what the workspace tells it to, and writes its results"},
	{names: "gcc g++ cc c++ clang clang++ ld as rustc tinygo nasm flex bison protoc swiftc fpc gfortran javap jar", effect: writes, why: "writes what it builds", probe: "--version"},
	{names: "cargo rustup", effect: runs, why: "runs build scripts, downloads, and writes what it builds", probe: versions},
	{names: "go", subs: []entry{
		{names: "version", read: "-m -v"},
		{names: "env", check: goVariables, read: "-json", write: "-w -u -changed"},
		{names: "doc", read: "-all -c -cmd -short -src -u", network: "-http"},
		{names: "build run test vet install get generate list mod work fix fmt clean tool telemetry bug",
			effect: writes, why: "builds, downloads, runs tools or rewrites files"},
	}},
	{names: "gofmt goimports gopls dlv golangci-lint staticcheck rustfmt clang-format cargo-clippy", effect: writes, why: "may rewrite files or run tools"},
	{names: "npm", read: "", probe: "--version -v", subs: []entry{
		{names: "ls list la ll explain why",
			read: `--depth: --all -a --json --long -l --parseable -p --prod --production? --dev --only: --omit: --include: -g --global --link
				--package-lock-only --unicode?`},
		{names: "root prefix bin", read: "-g --global", operands: noOperand},
		{names: "pkg", subs: []entry{{names: "get", read: "--json"}}},
		{names: "view info show v outdated audit search ping whoami doctor fund stars owner access profile token team org diff", effect: networks},
		{names: `install i in add ci clean-install install-test it uninstall un remove rm r update up upgrade dedupe ddp prune rebuild rb link ln
			unlink version publish unpublish deprecate dist-tag pack init create set cache config c shrinkwrap edit`,
			effect: writes, why: "changes packages or settings"},
		{names: "run run-script start stop restart test t exec x explore", effect: runs, why: "runs what package.json says"},
	}},
	{names: "docker podman gh", effect: networks, why: "talks to a service, and may change it", probe: "--version"},
	{names: "nerdctl docker-compose kubectl oc helm k9s minikube kind glab hub az aws gcloud gsutil terraform tofu pulumi ansible ansible-playbook vagrant packer heroku flyctl vercel netlify firebase doctl nomad vault consul",
		effect: networks, why: "talks to a service, and may change it"},
	{names: "curl wget rsync", effect: networks, probe: "--version"},
	{names: "aria2c http https httpie xh lynx w3m links elinks ftp lftp sftp scp ssh mosh telnet nc ncat netcat socat nmap ping ping6 traceroute tracepath mtr dig nslookup host whois rclone smbclient ssh-copy-id ssh-keyscan openssl",
		effect: networks},
	{names: "sqlite3 sqlite psql mysql mariadb mongo mongosh redis-cli duckdb clickhouse clickhouse-client influx cqlsh sqlcmd", effect: runs, why: "runs statements, and its client can write files and run commands"},
}

// changers are known by name so that the reason is a good one and a project cannot
// add them to its list.
var changers = []entry{
	{names: "rm rmdir unlink shred srm trash trash-put wipe", effect: writes, why: "removes files"},
	{names: "cp mv rename install ln link truncate tee dd sponge fallocate split csplit touch mkdir mkfifo mknod mktemp tempfile patch pax cpio ar ranlib strip objcopy zip zipnote 7z 7za 7zr rar unrar compress uncompress uudecode lz4 lzop brotli pigz pbzip2 dos2unix unix2dos indent ed ex red m4 gpg gpg2 age sops mkisofs xorriso",
		effect: writes, why: "writes files"},
	{names: "chmod chown chgrp chattr setfacl setfattr setcap chcon restorecon umount losetup mkfs mkswap swapon swapoff fdisk parted sync fsck e2fsck resize2fs tune2fs mount.fuse fusermount",
		effect: writes, why: "changes files or their rights"},
	{names: "vi vim view vimdiff nvim nano emacs pico micro joe ne mcedit mc code cursor subl gedit kate hx helix ranger nnn lf vidir visudo vipw sdiff dialog whiptail screen tmux byobu top htop btop atop iotop",
		effect: runs, why: "is interactive and can write files or run commands"},
	{names: "pkill killall killall5 skill snice renice reboot shutdown halt poweroff init telinit service initctl rc-service loginctl timedatectl hostnamectl localectl hwclock adjtimex chsh chfn passwd useradd userdel usermod groupadd groupdel adduser deluser at atq atrm batch modprobe insmod rmmod depmod iptables ip6tables nft ufw firewall-cmd ifconfig route iw iwconfig nmcli tc brctl ethtool update-alternatives update-grub ldconfig systemd-tmpfiles logger wall write mesg mail mailx sendmail lp lpr cancel setterm stty reset tput xset xdg-open open start notify-send pbcopy xclip xsel",
		effect: writes, why: "changes the system or reaches other people"},
	{names: "dc", effect: runs, why: "can run commands"},
	{names: "ldd", effect: runs, why: "may run the program it looks at"},
	{names: "diff3", effect: runs, why: "can run another program"},
}
