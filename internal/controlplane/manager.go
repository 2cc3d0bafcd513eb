package controlplane

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// startManager starts kube-controller-manager with only the named controllers. It does not wait for them: tests poll
// for the results.
func (c *ControlPlane) startManager(binaries string, controllers []string, output *tail) (*process, error) {
	// Its usual name in clusters, which is in policies.
	user, err := c.User("system:kube-controller-manager", "system:masters")
	if err != nil {
		return nil, err
	}
	kubeconfig, err := Kubeconfig(user)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(c.dir, "kube-controller-manager.kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return nil, fmt.Errorf("writing the kubeconfig of kube-controller-manager: %w", err)
	}
	return startProcess(output, filepath.Join(binaries, "kube-controller-manager"),
		"--kubeconfig="+path,
		"--controllers="+strings.Join(controllers, ","),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=1000", "--kube-api-burst=2000",
	)
}

// process is a component that envtest cannot run.
type process struct {
	command *exec.Cmd
	output  *tail
	exited  chan struct{} // closed when it has ended
}

// startProcess starts a program.
func startProcess(output *tail, path string, args ...string) (*process, error) {
	p := &process{command: exec.Command(path, args...), output: output, exited: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = output, output
	// Ctrl-C in a terminal goes to the whole process group: in another group, the program ends when Stop ends it, after
	// its clients.
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", filepath.Base(path), err)
	}
	go func() {
		defer close(p.exited)
		_ = p.command.Wait() // its exit code means nothing once it is asked to end
	}()
	return p, nil
}

// stop asks the program to end and kills it if it takes too long. It returns an error if the program has ended before.
func (p *process) stop() error {
	select {
	case <-p.exited:
		return fmt.Errorf("%s has ended by itself:\n%s", filepath.Base(p.command.Path), p.output)
	default:
	}
	// An error means that it has just ended.
	_ = p.command.Process.Signal(syscall.SIGTERM)
	timeout := time.NewTimer(stopTimeout)
	defer timeout.Stop()
	select {
	case <-p.exited:
		return nil
	case <-timeout.C:
	}
	if err := p.command.Process.Kill(); err != nil {
		return fmt.Errorf("killing %s: %w", filepath.Base(p.command.Path), err)
	}
	<-p.exited
	return nil
}
