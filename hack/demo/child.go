package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/corollary-dev/corollary/internal/controlplane"
)

const (
	binary = "bin/corollary"
	// startTimeout limits the time until corollary is ready.
	startTimeout = 30 * time.Second
	// readyInterval is the interval of the readiness checks, which corollary logs as long as it is not ready.
	readyInterval = 100 * time.Millisecond
	// stopTimeout limits the time until corollary ends.
	stopTimeout = 15 * time.Second
	// tailLines is the number of lines of its log in an error.
	tailLines = 40
)

// child is the running corollary.
type child struct {
	cmd     *exec.Cmd
	log     string
	metrics string
	ended   chan struct{}
	err     error // of Wait, once ended is closed
}

// startCorollary runs the built binary with both examples and waits until it is ready.
func startCorollary(ctx context.Context, console *printer, kubeconfig, log string) (*child, error) {
	if _, err := os.Stat(binary); err != nil {
		return nil, fmt.Errorf("finding the binary: %w: run make demo, which builds it", err)
	}
	metrics, err := controlplane.FreeAddress()
	if err != nil {
		return nil, err
	}
	health, err := controlplane.FreeAddress()
	if err != nil {
		return nil, err
	}
	args := []string{"run", "-c", chain + "/operators", "-c", app + "/operator.yaml"}
	file, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("creating corollary's log: %w", err)
	}
	defer file.Close()
	cmd := exec.Command(binary, append(args, "--kubeconfig", kubeconfig, "--metrics-bind-address", metrics,
		"--health-probe-bind-address",
		health)...)
	cmd.Stdout, cmd.Stderr = file, file
	// Ctrl-C in a terminal goes to the whole process group; corollary must get the signal only from the demo, once.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting corollary: %w", err)
	}
	c := &child{cmd: cmd, log: log, metrics: "http://" + metrics + "/metrics", ended: make(chan struct{})}
	go func() {
		c.err = cmd.Wait()
		close(c.ended)
	}()
	if err := c.waitReady(ctx, "http://"+health+"/readyz"); err != nil {
		_ = c.stop() // report the first error
		return nil, fmt.Errorf("waiting for corollary to be ready: %w\n\nThe end of its log:\n%s", err, c.tail())
	}
	console.done("corollary is up and ready (%s):", formatDuration(time.Since(begin)))
	console.block("corollary " + strings.Join(args, " "))
	return c, nil
}

func (c *child) waitReady(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return poll(ctx, readyInterval, func() (bool, string, error) {
		select {
		case <-c.ended:
			return false, "", fmt.Errorf("it ended by itself: %w", c.exitError())
		default:
		}
		why := ""
		_, err := fetch(ctx, url)
		if err != nil {
			why = err.Error() // retried
		}
		return err == nil, why, nil
	})
}

// fetch reads a page of the child.
func fetch(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s: %s", url, response.Status, bytes.TrimSpace(body))
	}
	return string(body), nil
}

// stop asks the child to end and returns an error if it does not end successfully.
func (c *child) stop() error {
	select {
	case <-c.ended:
		return c.exitError()
	default:
	}
	if err := c.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("interrupting corollary: %w", err)
	}
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-c.ended:
		return c.exitError()
	case <-timer.C:
		_ = c.cmd.Process.Kill() // it ignored the interrupt
		<-c.ended
		return fmt.Errorf("corollary did not end within %s of the interrupt\n%s", stopTimeout, c.tail())
	}
}

// exitError returns how the child ended; ended must be closed.
func (c *child) exitError() error {
	if c.err != nil {
		return fmt.Errorf("corollary ended with an error: %w\n%s", c.err, c.tail())
	}
	return nil
}

// tail returns the end of the child's log.
func (c *child) tail() string {
	data, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.SplitAfter(string(data), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "")
}
