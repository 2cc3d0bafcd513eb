package gobuild

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"
)

// staging is the prefix of unfinished directories. One that exists while the lock is held was left by a build that was
// killed.
const staging = ".building-"

// lock takes the build lock of the cache directory and returns a function that releases it. While another process holds
// it, progress says so.
func (m Module) lock(ctx context.Context, cache string, progress io.Writer) (unlock func(), err error) {
	if err := ctx.Err(); err != nil { // otherwise it might still write into the directory
		return nil, fmt.Errorf("waiting for another build: %w", err)
	}
	type result struct {
		unlock func()
		err    error
	}
	locked := make(chan result, 1)
	go func() {
		unlock, err := lockedfile.MutexAt(filepath.Join(cache, ".lock")).Lock()
		locked <- result{unlock, err}
	}()
	begin := time.Now()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case got := <-locked:
			if got.err != nil {
				return nil, fmt.Errorf("locking the cache directory: %w", got.err)
			}
			return got.unlock, nil
		case <-ticker.C:
			fmt.Fprintf(progress, "%s: another process is building it, waiting since %s\n",
				m.Title, time.Since(begin).Round(time.Second))
		case <-ctx.Done():
			go func() {
				if late := <-locked; late.err == nil {
					late.unlock()
				}
			}()
			return nil, fmt.Errorf("waiting for another build: %w", ctx.Err())
		}
	}
}

// build compiles the module in the folder source into a directory next to dir, links the names and renames it, so that
// dir is either complete or absent. The caller holds the lock.
func (m Module) build(ctx context.Context, source, dir string, progress io.Writer) error {
	leftover, err := filepath.Glob(filepath.Join(filepath.Dir(dir), staging+"*"))
	if err != nil {
		return fmt.Errorf("listing the cache directory: %w", err)
	}
	for _, path := range append(leftover, dir) { // dir exists but is incomplete
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("clearing the cache directory: %w", err)
		}
	}
	stage, err := os.MkdirTemp(filepath.Dir(dir), staging)
	if err != nil {
		return fmt.Errorf("creating the staging directory: %w", err)
	}
	defer os.RemoveAll(stage)
	if err := m.compile(ctx, source, filepath.Join(stage, m.Binary), progress); err != nil {
		return err
	}
	for _, name := range m.Links {
		if err := os.Symlink(m.Binary, filepath.Join(stage, name)); err != nil {
			return fmt.Errorf("linking %s: %w", name, err)
		}
	}
	if err := os.Chmod(stage, 0o755); err != nil {
		return fmt.Errorf("opening the staging directory to other users: %w", err)
	}
	if err := os.Rename(stage, dir); err != nil {
		return fmt.Errorf("moving the binaries into place: %w", err)
	}
	return nil
}

// compile builds the module in the folder source into the file output and reports
// progress.
func (m Module) compile(ctx context.Context, source, output string, progress io.Writer) error {
	report := newReporter(m.Title, progress)
	defer report.stop()
	report.phase("listing its packages and downloading what is missing")
	packages, err := m.run(ctx, source, report, "list", "-deps", "-tags", m.Tags, m.Package)
	if err != nil {
		return fmt.Errorf("listing the packages of the %s: %w", m.Title, err)
	}
	flags, err := m.ldflags(ctx, source, report)
	if err != nil {
		return err
	}
	report.compiling(bytes.Count(packages, []byte("\n")))
	_, err = m.run(ctx, source, report, "build", "-v", "-buildvcs=false",
		"-tags", m.Tags, "-ldflags", flags, "-o", output, m.Package)
	if err != nil {
		return fmt.Errorf("building the %s: %w", m.Title, err)
	}
	report.done()
	return nil
}

// ldflags returns flags that strip the binary and set its version, as the programs' own releases do, because clients
// parse it.
func (m Module) ldflags(ctx context.Context, source string, report *reporter) (string, error) {
	flags := []string{"-s", "-w"}
	if m.Stamps == nil {
		return strings.Join(flags, " "), nil
	}
	version, err := m.run(ctx, source, report, "list", "-m", "-f", "{{.Version}}", m.Versioned)
	if err != nil {
		return "", fmt.Errorf("reading the version of the %s: %w", m.Title, err)
	}
	for _, stamp := range m.Stamps(strings.TrimSpace(string(version))) {
		flags = append(flags, "-X", stamp)
	}
	return strings.Join(flags, " "), nil
}

// run calls the go command in the folder source and returns its standard output. Its standard error goes to the
// reporter line by line and, if the command fails, its end is part of the error.
func (m Module) run(ctx context.Context, source string, report *reporter, args ...string) ([]byte, error) {
	var stdout bytes.Buffer
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = source
	// The module is independent: a workspace or flags of the caller (-mod=vendor, -race) do not apply. Without cgo no C
	// compiler is needed.
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly -modfile="+m.modFile(), "CGO_ENABLED=0")
	command.Stdout = &stdout
	command.Stderr = report
	// Interrupted, the go command stops its compilers; killed, it would not.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, report.tail())
	}
	return stdout.Bytes(), nil
}
