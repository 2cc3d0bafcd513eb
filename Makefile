# Go, make and git are all that is needed. `make` lists the targets; the text of
# each stands behind the ## on its line. PKG narrows test, bench and lint:
# `make test PKG=./pkg/drift`.

GO       ?= go
FUZZTIME ?= 20s
SEED     ?= 1
SEEDS    ?= 200
ROUNDS   ?= 200
TIMEOUT  ?= 60m
PKG      ?= ./...

MODULE   := github.com/corollary-dev/corollary
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
DATE     ?= $(shell git log -1 --format=%cI 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X $(MODULE)/pkg/cli/command.Version=$(VERSION) -X $(MODULE)/pkg/cli/command.Revision=$(REVISION) \
	-X $(MODULE)/pkg/cli/command.Date=$(DATE)

# The race detector needs a C compiler on Linux. Where there is none, Go turns
# cgo off, and the tests run without the detector rather than not at all.
RACE := $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

# The image: its name, what builds it (the first of these that there is), the
# image that Go comes from and the platform that it is for, where not this one.
IMAGE    ?= corollary:$(VERSION:v%=%)
ENGINE   ?= $(firstword $(notdir $(shell command -v docker podman buildah 2>/dev/null)))
BUILDER  ?=
PLATFORM ?=

# $(call debian,WHAT:PACKAGE ...) succeeds where each WHAT, a command or a file, is there, after installing Debian's packages of those that
# are not, as root. What is there stays as it is: a Node.js from elsewhere does not go together with Debian's npm.
debian = { missing=$$(for each in $(1); do command -v "$${each%:*}" || ls $${each%:*} || echo "$${each\#*:}" >&3; done 3>&1 >/dev/null 2>&1); \
	[ -z "$$missing" ] || { [ "$$(id -u)" = 0 ] && command -v apt-get && apt-get update && \
	apt-get install --yes --no-install-recommends $$missing; }; } >/dev/null

# Succeeds where the image can be tested. Root it has to be: the test mounts what is in the image, and takes its user.
testable = [ "$$(id -u)" = 0 ] && $(call debian,buildah:buildah)

# Succeeds where databases can be tested.
databases = $(call debian,/usr/lib/postgresql/*/bin/postgres:postgresql /usr/sbin/mariadbd:mariadb-server-core \
	/usr/bin/my_print_defaults:mariadb-client-core)

# Succeeds where the lock services of the tests are there that are not Go: ZooKeeper, and dynalite from npm.
lockable = $(call debian,/usr/share/java/zookeeper.jar:libzookeeper-java java:default-jre-headless npm:npm) && \
	{ cmp -s hack/dynalite/package-lock.json bin/dynalite/installed || { mkdir -p bin/dynalite && cp hack/dynalite/*.json bin/dynalite && \
	npm ci --prefix bin/dynalite --no-audit --no-fund --ignore-scripts --loglevel=error >/dev/null && \
	cp hack/dynalite/package-lock.json bin/dynalite/installed; }; }

# The folders of the test files in which a line matches $(1).
folders = $(sort $(dir $(shell grep -rl --include='*_test.go' --exclude-dir=.git -e '$(1)' .)))

# The tests that need a real API server, as a pattern for -run: the others have run without it.
server_tests = $(shell grep -rl --include='*_test.go' --exclude-dir=.git -e '^//go:build controlplane' . | \
	xargs sed -nE 's/^func ((Test|Fuzz|Example)[A-Za-z0-9_]*).*/\1/p' | sort -u | paste -sd '|')

# Tests that watch leases, clusters, processes and releases of the chart for minutes of real time, or compile everything as a release does.
# test-race, chaos-clusters and chaos-shards run them.
long_tests = TestInstall|TestBackupBeforeUpgrade|TestBuiltTwiceIsEqual|TestZipped|TestLease|TestDNS|TestEtcd|TestShardFaults|TestRollingUpgrade|TestUpgradeAndBack

.DEFAULT_GOAL := help
.PHONY: help demo demo-clusters test test-memory test-apiserver test-long test-race edits locks-test chaos-clusters chaos-shards clusters-picture sim sim-mutants test-server test-oldest lint vulncheck bench bench-operators bench-stages bench-configs bench-shards bench-page cluster build image image-test database-test dist site fuzz golden tools controlplane

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# demo and cluster run until Ctrl-C; `go run` would then report a failure.
demo: build ## show the main job on a real API server, step by step
	@$(GO) build -o bin/demo ./hack/demo
	@exec bin/demo

demo-clusters: build ## show two clusters of which one is active: two control planes, one lock
	@$(GO) build -o bin/demo-clusters ./hack/clusters
	@exec bin/demo-clusters

# With the race detector tests take several times as long, some a hundred times. These packages have it only in test-race: those that
# compare texts, one after the other, and those that only compute. The simulation runs the whole engine with it.
computing = docs|examples|internal/house|pkg/(backup|cli|convert|convert/generator|convert/ownership|drift|engine|generate|informers/kept|render|rules)
plain     = $(shell $(GO) list $(PKG) | grep -xE '$(MODULE)/($(computing))')
racing    = $(shell $(GO) list $(PKG) | grep -vxE '$(MODULE)/($(computing))')

test: controlplane tools ## vet; the tests in memory, with the race detector, beside those that need a real API server
	$(GO) vet -tags controlplane,image,databases,locks $(PKG)
	@$(if $(RACE),,echo "no C compiler was found: the tests run without the race detector")
	@$(MAKE) --no-print-directory -j 2 test-memory test-apiserver

# One is about the processors, the other waits half of its time.
test-memory:
	@echo '$(GO) test $(RACE) ...: the tests in memory'
	@$(if $(racing),$(GO) test $(RACE) -vet=off -timeout $(TIMEOUT) $(racing))
	@$(if $(plain),$(GO) test -vet=off -timeout $(TIMEOUT) $(plain))

test-apiserver:
	@echo '$(GO) test -tags controlplane ...: the tests that need a real API server'
	@$(GO) test -tags controlplane -vet=off -timeout $(TIMEOUT) -run '^($(server_tests))$$$$' -skip '^($(long_tests))$$$$' \
		$(if $(filter ./...,$(PKG)),$(call folders,//go:build controlplane),$(PKG))

# Each runs alone, too, as .github/workflows/long.yml does.
LONG = test-race edits test-oldest database-test locks-test image-test chaos-clusters chaos-shards sim fuzz

test-long: ## run what takes hours or other software: race detector, random edits, oldest Kubernetes, databases, locks, image, chaos, simulation, fuzzing
	@set -e; for target in $(LONG); do $(MAKE) --no-print-directory $$target; done

test-race: controlplane tools ## run all tests with the race detector, those on a real API server included
	$(GO) test $(RACE) -tags controlplane -timeout 0 $(PKG)

EDITS ?= 40

edits: controlplane ## make EDITS (40) random edits of each example on a real API server, from SEED (1) on: what is undone leaves nothing
	$(GO) test -tags controlplane -count=1 -timeout 0 -v -run '^TestExamplesEdited$$$$' ./examples -edits $(EDITS) -seed $(SEED)

locks-test: controlplane ## run two clusters with the lock services that are not Go; installs these by apt-get if they are missing
	@$(lockable)
	$(GO) test $(RACE) -tags controlplane,locks -count=1 -timeout $(TIMEOUT) -run 'ZooKeeper|DynamoDB' ./internal/clusters

chaos-clusters: controlplane ## inject 200 random faults (ROUNDS) into two clusters for each lock service, from SEED (1) on
	@$(lockable)
	$(GO) test -tags controlplane,locks -count=1 -timeout 0 -v -skip '^TestShardFaults$$$$' ./internal/clusters -rounds $(ROUNDS) -seed $(SEED)

chaos-shards: ROUNDS    = 20
chaos-shards: OBJECTS   = 10000
chaos-shards: PROCESSES = 4
chaos-shards: CHANGES   = 300
chaos-shards: controlplane ## inject 20 random faults (ROUNDS) into PROCESSES that share the shards of OBJECTS, under CHANGES a second
	$(GO) test -tags controlplane -count=1 -timeout 0 -v -run '^TestShardFaults$$$$' ./internal/clusters -seed $(SEED) -rounds $(ROUNDS) \
		-objects $(OBJECTS) -processes $(PROCESSES) -changes $(CHANGES) -lease 15s $(if $(FILTERED),-filtered)

clusters-picture: controlplane ## draw the picture of a run in docs/activation.md anew
	$(GO) test -tags controlplane -count=1 -run '^TestEtcd$$$$' ./internal/clusters -seed 7 -svg $(CURDIR)/docs/pictures/clusters.svg

# Those whose tests depend on what an API server answers. The others compare with
# golden files of the newest Kubernetes, or run its kubectl and helm.
SERVER_PKG ?= ./internal/controlplane ./internal/testkit ./pkg/apply ./pkg/drift ./pkg/engine ./pkg/rules

test-server: controlplane ## run the tests that depend on the API server's version
	$(GO) test $(RACE) -tags controlplane -timeout $(TIMEOUT) $(SERVER_PKG)

test-oldest: ## run those on the oldest Kubernetes that is supported
	@$(MAKE) --no-print-directory test-server KUBEBUILDER_ASSETS="$$($(GO) run ./hack/assets controlplane-oldest)"

sim: ## simulate SEEDS (200) schedules of each config and example, from SEED (1) on; 10 times as many random configs
	$(GO) test ./internal/sim -count=1 -timeout 0 -seed $(SEED) -seeds $(SEEDS)

sim-mutants: ## break the engine in several ways and count the schedules of make sim SEEDS=10 that notice each
	$(GO) test ./internal/sim -tags mutants -run TestMutants -count=1 -timeout 0 -v -seeds 10

# The linters are built from source the first time.
lint: ## run golangci-lint, and actionlint on the workflows
	@actionlint=$$($(GO) run ./hack/assets actionlint) && $$actionlint
	$(GO) tool -modfile=tools/go.mod golangci-lint run --build-tags controlplane,image,databases,locks $(PKG)

vulncheck: ## look for known vulnerabilities in what is called; asks vuln.go.dev
	$(GO) tool -modfile=tools/go.mod govulncheck ./...

bench: controlplane ## run the benchmarks of the packages
	$(GO) test -run '^$$' -bench . -benchmem -tags controlplane -p 1 $(PKG)

# As many as fit: the objects of a run are deleted at its end, but the API server keeps their history for some minutes.
OBJECTS ?= 100,1000
SIZES   ?= 500,4000,27000
TURNS   ?= 3
SKIP    ?=

bench-operators: controlplane ## compare with a hand-written operator: whole processes, OBJECTS of SIZES bytes, TURNS times, phases to SKIP
	@$(GO) build -o bin/bench-operators ./hack/bench
	@exec bin/bench-operators -objects '$(OBJECTS)' -sizes '$(SIZES)' -rounds '$(TURNS)' -skip '$(SKIP)' -add

bench-stages: controlplane ## divide the CPU time of both operators among stages of the work: 1,000 objects of SIZES bytes, phases to SKIP
	@$(GO) build -o bin/bench-operators ./hack/bench
	@bin/bench-operators -objects 1000 -sizes '$(SIZES)' -rounds 1 -skip '$(SKIP)' -profile -out bin/bench-stages
	@$(GO) run ./hack/bench/stages bin/bench-stages

# The first is the least; the last one is measured in detail.
CONFIGS ?= 1,50,200
KINDS   ?= 50

bench-configs: controlplane ## measure many operators in one process: CONFIGS of them, over KINDS kinds
	@$(GO) build -o bin/bench-operators ./hack/bench
	@exec bin/bench-operators -configs '$(CONFIGS)' -kinds '$(KINDS)'

# The label of shards needs no feature gate; the upstreams are filtered with one.
PROCESSES ?= 1,2,4
MEMORY    ?=

bench-shards: controlplane ## measure PROCESSES that share shards: OBJECTS of SIZES bytes; also with a filter of the API server, and with the limit MEMORY
	@$(GO) build -o bin/bench-operators ./hack/bench
	@bin/bench-operators -processes '$(PROCESSES)' -objects '$(OBJECTS)' -sizes '$(SIZES)' -rate 300 -memory '$(MEMORY)'
	@exec bin/bench-operators -processes '$(PROCESSES)' -objects '$(OBJECTS)' -sizes '$(SIZES)' -rate 300 -filtered

bench-page: ## write the results of bench-operators, bench-configs and bench-shards into docs/performance.md, as tables and plots
	$(GO) run ./hack/bench -page docs/performance.md

cluster: controlplane ## start an API server, print its kubeconfig, stay up until Ctrl-C
	@$(GO) build -o bin/cluster ./hack/cluster
	@exec bin/cluster

build: ## build bin/corollary
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/corollary ./cmd/corollary

image: ## build the container image IMAGE with docker, podman or buildah
	$(or $(ENGINE),$(error no docker, podman or buildah was found)) build --tag $(IMAGE) \
		--build-arg VERSION=$(VERSION) --build-arg REVISION=$(REVISION) --build-arg DATE=$(DATE) \
		$(if $(BUILDER),--build-arg BUILDER=$(BUILDER)) $(if $(PLATFORM),--platform $(PLATFORM)) \
		$(if $(filter docker,$(ENGINE)),,--build-arg BUILDPLATFORM=linux/$(shell $(GO) env GOHOSTARCH)) .

image-test: controlplane ## build the image with buildah and run what is in it (Linux, as root)
	@$(testable)
	$(GO) test -tags image -count=1 -timeout $(TIMEOUT) ./internal/image

database-test: controlplane ## test what reads databases with a real PostgreSQL and MariaDB, on loopback
	@$(databases)
	$(GO) test $(RACE) -tags controlplane,databases -count=1 -timeout $(TIMEOUT) -run 'Postgres|MySQL' ./internal/mariadb ./pkg/source ./pkg/engine \
		./internal/clusters

# A release is built from its tag: `git checkout v1.2.3 && make dist`.
dist: ## build what a release consists of, into dist
	$(GO) run ./hack/dist -version '$(VERSION)' -date '$(DATE)' -image '$(IMAGE)' -ldflags "$(LDFLAGS)"

site: ## build the documentation as a web site, into bin/site
	@hugo=$$($(GO) run ./hack/assets hugo) && rm -rf bin/site && \
		$$hugo build --quiet --noBuildLock --panicOnWarning --source site --destination ../bin/site && \
		echo "bin/site/index.html can be opened as it is, or bin/site be served"

fuzz: ## run each fuzz target for FUZZTIME (20s)
	@set -e; for folder in $(call folders,^func Fuzz); do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' $$folder*_test.go); do \
			echo "$$folder $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$folder; \
		done; \
	done

# Tests that need the control plane have a build tag; without it their folder may have no golden file.
golden: controlplane ## write the golden files anew; look at the diff before you commit it
	@set -e; files=$$(grep -rl --include='*_test.go' '$(MODULE)/internal/golden"' .); \
	for folder in $$(grep -L '^//go:build' $$files | xargs -n 1 dirname | sort -u); do \
		$(GO) test $$folder -update; \
	done
	$(GO) test -tags controlplane ./charts -run 'Templates' -update
	$(GO) test -tags controlplane ./pkg/kinds -run 'TestServer' -update
	$(GO) test -tags controlplane ./pkg/cli -run 'TestPlanOfDefaults' -update

# What tests run is built once into the user's cache (minutes), and again when the
# go.mod or go.sum that pins it changes.
tools: ## build the tools that tests and lint run, such as helm and kubectl
	@$(GO) run ./hack/assets $(notdir $(patsubst %/,%,$(dir $(wildcard tools/*/go.mod)))) >/dev/null

controlplane:
	@$(GO) run ./hack/assets controlplane >/dev/null
