package assets

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

// binary is the file that the names are links to.
const binary = "controlplane"

// staging starts the names of directories that are being filled. One that is
// found while the lock is held was left behind by a build that was killed.
const staging = ".building-"

// lock takes the build lock of the cache directory and returns how to let it
// go. While another process holds it, progress says so.
func lock(ctx context.Context, cache string, progress io.Writer) (unlock func(), err error) {
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
			fmt.Fprintf(progress, "control plane: another process is building it, waiting since %s\n",
				time.Since(begin).Round(time.Second))
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for another build: %w", ctx.Err())
		}
	}
}

// build compiles the module into a directory beside dir, links the names and
// renames it, so that dir is either complete or absent. The caller holds the lock.
func build(ctx context.Context, module, dir string, progress io.Writer) error {
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
	if err := compile(ctx, module, filepath.Join(stage, binary), progress); err != nil {
		return err
	}
	for _, name := range Names {
		if err := os.Symlink(binary, filepath.Join(stage, name)); err != nil {
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

// compile builds the module into the file output and reports progress.
func compile(ctx context.Context, module, output string, progress io.Writer) error {
	report := newReporter(progress)
	defer report.stop()
	report.phase("listing its packages and downloading what is missing")
	packages, err := run(ctx, module, report, "list", "-deps", ".")
	if err != nil {
		return fmt.Errorf("listing the control plane's packages: %w", err)
	}
	version, err := run(ctx, module, report, "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return fmt.Errorf("reading the control plane's version: %w", err)
	}
	report.compiling(bytes.Count(packages, []byte("\n")))
	_, err = run(ctx, module, report, "build", "-v", "-buildvcs=false",
		"-ldflags", ldflags(strings.TrimSpace(string(version))), "-o", output, ".")
	if err != nil {
		return fmt.Errorf("building the control plane: %w", err)
	}
	report.done()
	return nil
}

// ldflags strips the binary and stamps the version into it, which Kubernetes'
// own build does and clients parse: without it, the server calls itself v0.0.0.
func ldflags(version string) string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	flags := []string{"-s", "-w"}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, stamp := range []string{
			"gitVersion=" + version, "gitMajor=" + major, "gitMinor=" + minor,
			"gitCommit=unknown", "gitTreeState=clean",
		} {
			flags = append(flags, "-X", pkg+"."+stamp)
		}
	}
	return strings.Join(flags, " ")
}

// run calls the go command in the module and returns its standard output. Its
// standard error goes to the reporter line by line and, if the command fails,
// the end of it into the error.
func run(ctx context.Context, module string, report *reporter, args ...string) ([]byte, error) {
	var stdout bytes.Buffer
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = module
	// The module stands alone: a workspace or flags of the caller's (-mod=vendor,
	// -race) are not meant for it. Without cgo no C compiler is needed.
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly", "CGO_ENABLED=0")
	command.Stdout = &stdout
	command.Stderr = report
	// Interrupted, the go command takes its compilers with it; killed, it would not.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, report.tail())
	}
	return stdout.Bytes(), nil
}
