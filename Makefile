# Go, make and git are all that is needed. `make` lists the targets; the text of
# each stands behind the ## on its line. PKG narrows test, bench and lint:
# `make test PKG=./pkg/drift`.

GO       ?= go
FUZZTIME ?= 20s
TIMEOUT  ?= 30m
PKG      ?= ./...

MODULE   := github.com/corollary-dev/corollary
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X $(MODULE)/pkg/cli.Version=$(VERSION) -X $(MODULE)/pkg/cli.Revision=$(REVISION)

# The race detector needs a C compiler on Linux. Where there is none, Go turns
# cgo off, and the tests run without the detector rather than not at all.
RACE := $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

# The folders of the test files in which a line matches $(1).
folders = $(sort $(dir $(shell grep -rl --include='*_test.go' --exclude-dir=.git -e '$(1)' .)))

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench cluster build fuzz golden controlplane

help:
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# demo and cluster run until Ctrl-C; `go run` would then report a failure.
demo: build controlplane ## show the main job on a real API server, step by step
	@$(GO) build -o bin/demo ./hack/demo
	@exec bin/demo

test: controlplane ## vet, and run all tests, those on a real API server included
	$(GO) vet -tags controlplane $(PKG)
	@$(if $(RACE),,echo "no C compiler was found: the tests run without the race detector")
	$(GO) test $(RACE) -tags controlplane -timeout $(TIMEOUT) $(PKG)

lint: ## run golangci-lint, which is built from source the first time
	$(GO) tool -modfile=tools/go.mod golangci-lint run --build-tags controlplane $(PKG)

bench: controlplane ## run the benchmarks, that against a hand-written operator included
	$(GO) test -run '^$$' -bench . -benchmem -tags controlplane -p 1 $(PKG)

cluster: controlplane ## start an API server, print its kubeconfig, stay up until Ctrl-C
	@$(GO) build -o bin/cluster ./hack/cluster
	@exec bin/cluster

build: ## build bin/corollary
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/corollary ./cmd/corollary

fuzz: ## run each fuzz target for FUZZTIME (20s)
	@set -e; for folder in $(call folders,^func Fuzz); do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' $$folder*_test.go); do \
			echo "$$folder $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$folder; \
		done; \
	done

golden: ## write the golden files anew; look at the diff before you commit it
	@set -e; for folder in $(call folders,$(MODULE)/internal/golden"); do \
		$(GO) test $$folder -update; \
	done

# The binaries of the control plane, built once into the user's cache (minutes).
controlplane:
	@$(GO) run ./hack/assets >/dev/null
