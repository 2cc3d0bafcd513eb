//go:build image && linux

package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// containerEnv has a container as JSON; if it is set, the test binary becomes that container's program and runs no
// tests.
const containerEnv = "IMAGE_TEST_CONTAINER"

// Constants of prctl(2) that package syscall does not have.
const (
	prCapBSetDrop   = 24
	prSetNoNewPrivs = 38
	lastCapability  = 63 // more than exist: dropping one that does not exist fails without harm
)

// container is the input of a container runtime. The test replaces a runtime, which would need more of a machine.
type container struct {
	Root     string            // the image's file system; mounted read-only
	Volumes  map[string]string // directories by their mount path, read-only
	UID, GID int
	Env      []string
	Args     []string // the first is the program, a path in Root
}

// command returns the container as a command with its own namespaces. Its mounts are gone when it ends.
func (c container) command(ctx context.Context, t *testing.T) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(ctx, "/proc/self/exe")
	command.Env = []string{containerEnv + "=" + string(text)}
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		Pdeathsig:  syscall.SIGKILL,
	}
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	return command
}

// output runs a container with the arguments and returns its output and its exit code.
func (c container) output(t *testing.T, args ...string) (string, int) {
	t.Helper()
	c.Args = append(c.Args, args...)
	out, err := c.command(t.Context(), t).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("running %v: %v", c.Args, err)
	}
	if exit != nil {
		return string(out), exit.ExitCode()
	}
	return string(out), 0
}

// become replaces this process, which has its own namespaces, by the program of the container. It returns only on an
// error.
func become(text string) error {
	runtime.LockOSThread()
	var c container
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return fmt.Errorf("reading the container: %w", err)
	}
	if err := c.mount(); err != nil {
		return err
	}
	if err := errors.Join(syscall.Chroot(c.Root), syscall.Chdir("/")); err != nil {
		return fmt.Errorf("entering the container: %w", err)
	}
	for capability := range uintptr(lastCapability) {
		_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prCapBSetDrop, capability, 0)
	}
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(c.GID), syscall.Setuid(c.UID)); err != nil {
		return fmt.Errorf("becoming user %d:%d: %w", c.UID, c.GID, err)
	}
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0); errno != 0 {
		return fmt.Errorf("giving up new privileges: %w", errno)
	}
	return fmt.Errorf("running %s: %w", c.Args[0], syscall.Exec(c.Args[0], c.Args, c.Env))
}

// mount makes the file system of the container, all of it read-only.
func (c container) mount() error {
	const bind, readOnly = syscall.MS_BIND | syscall.MS_REC, syscall.MS_BIND | syscall.MS_REMOUNT | syscall.MS_RDONLY
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keeping mounts to itself: %w", err)
	}
	if err := syscall.Mount(c.Root, c.Root, "", bind, ""); err != nil {
		return fmt.Errorf("mounting the root: %w", err)
	}
	for path, dir := range c.Volumes {
		target := filepath.Join(c.Root, path)
		if err := errors.Join(os.MkdirAll(target, 0o755), syscall.Mount(dir, target, "", bind, ""),
			syscall.Mount("", target, "", readOnly, "")); err != nil {
			return fmt.Errorf("mounting %s: %w", path, err)
		}
	}
	proc := filepath.Join(c.Root, "proc")
	if err := errors.Join(os.MkdirAll(proc, 0o755), syscall.Mount("proc", proc, "proc", 0, "")); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	if err := syscall.Mount("", c.Root, "", readOnly, ""); err != nil {
		return fmt.Errorf("making the root read-only: %w", err)
	}
	return nil
}
