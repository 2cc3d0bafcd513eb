// Command clusters shows one active cluster: it starts two control planes, an etcd as the lock, and the built binary
// for each cluster. Then it kills the active one. Each step checks its result and has a deadline, so it is also a test.
// It ends by itself.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/internal/assets"
	"github.com/corollary-dev/corollary/internal/controlplane"
)

const (
	binary = "bin/corollary"
	chain  = "examples/configs/chain"
	// patience limits each step.
	patience = time.Minute
)

var (
	websites = schema.GroupVersionResource{Group: "tools.example.com", Version: "v1", Resource: "websites"}
	pages    = schema.GroupVersionResource{Group: "tools.example.com", Version: "v1", Resource: "pages"}
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "\nclusters: %v\n", err)
		os.Exit(1)
	}
}

// cluster is one of the two.
type cluster struct {
	name, dir string
	plane     *controlplane.ControlPlane
	client    dynamic.Interface
	process   *exec.Cmd
}

// demo is what all steps have.
type demo struct {
	dir      string
	lock     *exec.Cmd
	clusters []*cluster
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "corollary-clusters-")
	if err != nil {
		return fmt.Errorf("creating a directory: %w", err)
	}
	defer os.RemoveAll(dir)
	d := &demo{dir: dir}
	defer func() { err = errors.Join(err, d.stop()) }()
	for i, step := range []struct {
		title string
		do    func(context.Context) error
	}{
		{"Two control planes, and an etcd outside of them as the lock", d.start},
		{"One operator for each cluster; the same custom resource in both", d.operators},
		{"The active one is killed", d.kill},
		{"It comes back as a standby, and is handed the lock", d.handover},
	} {
		fmt.Printf("\n%d. %s\n", i+1, step.title)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("step %d (%s): %w", i+1, step.title, err)
		}
	}
	fmt.Println("\nStopping.")
	return nil
}

func (d *demo) start(ctx context.Context) error {
	binaries, _, err := assets.BuildForDemo(ctx, os.Stderr)
	if err != nil {
		return err
	}
	crds, err := os.ReadFile(filepath.Join(chain, "crd.yaml"))
	if err != nil {
		return fmt.Errorf("reading an example: %w: run make demo-clusters from the root of the repository", err)
	}
	for _, name := range []string{"eu", "us"} {
		c := &cluster{name: name, dir: filepath.Join(d.dir, name)}
		c.plane, err = controlplane.Start(ctx, controlplane.Options{Assets: binaries, CRDs: []string{string(crds)}})
		if err != nil {
			return err
		}
		d.clusters = append(d.clusters, c)
		if err := c.prepare(); err != nil {
			return err
		}
	}
	client, err := d.startLock(binaries)
	if err != nil {
		return err
	}
	text := "apiVersion: corollary.dev/v1alpha1\nkind: Activation\nmetadata: {name: global}\netcd: {endpoints: " +
		"[\"http://" + client +
		"\"], key: /corollary/demo}\nleaseDuration: 5s\nrenewDeadline: 3s\nretryPeriod: 500ms\n"
	fmt.Println(indent(text))
	return os.WriteFile(d.activation(), []byte(text), 0o600)
}

// prepare writes the kubeconfig of a cluster.
func (c *cluster) prepare() error {
	text, err := controlplane.Kubeconfig(c.plane.Config())
	if err != nil {
		return err
	}
	if c.client, err = dynamic.NewForConfig(c.plane.Config()); err != nil {
		return fmt.Errorf("preparing a client: %w", err)
	}
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return fmt.Errorf("creating a directory: %w", err)
	}
	return os.WriteFile(filepath.Join(c.dir, "kubeconfig"), text, 0o600)
}

// startLock starts an etcd and returns where clients find it.
func (d *demo) startLock(binaries string) (string, error) {
	client, err := controlplane.FreeAddress()
	if err != nil {
		return "", err
	}
	peer, err := controlplane.FreeAddress()
	if err != nil {
		return "", err
	}
	d.lock = exec.Command(filepath.Join(binaries, "etcd"), "--name", "lock", "--data-dir", filepath.Join(d.dir, "etcd"),
		"--listen-client-urls", "http://"+client, "--advertise-client-urls", "http://"+client,
		"--listen-peer-urls", "http://"+peer,
		"--initial-advertise-peer-urls", "http://"+peer, "--initial-cluster", "lock=http://"+peer, "--log-level", "error")
	if err := d.lock.Start(); err != nil {
		return "", fmt.Errorf("starting etcd: %w", err)
	}
	return client, nil
}

func (d *demo) activation() string { return filepath.Join(d.dir, "activation.yaml") }

// startOperator runs corollary for a cluster.
func (d *demo) startOperator(c *cluster) error {
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	defer log.Close()
	c.process = exec.Command(binary, "run", "-c", chain+"/operators", "-c", d.activation(),
		"--activation-identity", c.name,
		"--kubeconfig", filepath.Join(c.dir, "kubeconfig"), "--metrics-bind-address", "0", "--health-probe-bind-address", "0")
	c.process.Stdout, c.process.Stderr = log, log
	c.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C ends it through the demo only
	if err := c.process.Start(); err != nil {
		return fmt.Errorf("starting corollary: %w: make demo-clusters builds it", err)
	}
	return nil
}

func (d *demo) operators(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join(chain, "cr.yaml"))
	if err != nil {
		return fmt.Errorf("reading an example: %w", err)
	}
	documents, err := controlplane.Documents(string(text))
	if err != nil {
		return fmt.Errorf("reading an example: %w", err)
	}
	for _, c := range d.clusters {
		_, err := c.client.Resource(websites).Namespace("default").
			Create(ctx, documents[0].DeepCopy(), metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("creating a Website in %s: %w", c.name, err)
		}
	}
	for _, c := range d.clusters { // one after the other, so that eu is the active one
		if err := d.startOperator(c); err != nil {
			return err
		}
		if err := d.await(ctx, d.clusters[0]); err != nil {
			return err
		}
	}
	us := d.clusters[1]
	err = poll(ctx, func() (bool, string) {
		log, _ := os.ReadFile(filepath.Join(us.dir, "log"))
		return strings.Contains(string(log), "another cluster is active"), "us is not a standby yet:\n" + string(log)
	})
	if err != nil {
		return err
	}
	n, err := count(ctx, us)
	if err != nil {
		return err
	}
	if n > 0 {
		return fmt.Errorf("us is a standby, and has %d pages", n)
	}
	fmt.Println("   eu has made its pages; us, a standby, has made none.")
	return nil
}

func (d *demo) kill(ctx context.Context) error {
	eu, us := d.clusters[0], d.clusters[1]
	begin := time.Now()
	if err := eu.process.Process.Kill(); err != nil {
		return fmt.Errorf("killing corollary: %w", err)
	}
	_ = eu.process.Wait() // it was killed
	eu.process = nil
	if err := d.await(ctx, us); err != nil {
		return err
	}
	fmt.Printf("   us has made its pages %.1f s after eu was killed: leaseDuration is 5 s.\n", time.Since(begin).Seconds())
	return nil
}

func (d *demo) handover(ctx context.Context) error {
	if err := d.startOperator(d.clusters[0]); err != nil {
		return err
	}
	return poll(ctx, func() (bool, string) {
		out, err := d.command(ctx, "activation", "handover", "-c", d.activation())
		if err == nil && strings.Contains(out, "eu is active now") {
			fmt.Println(indent("$ corollary activation handover -c activation.yaml\n" + out))
			return true, ""
		}
		return false, out
	})
}

// await waits until a cluster is active and has made the pages, and shows who is active.
func (d *demo) await(ctx context.Context, c *cluster) error {
	var state string
	err := poll(ctx, func() (bool, string) {
		var err error
		if state, err = d.command(ctx, "activation", "-c", d.activation()); err != nil ||
			!strings.Contains(state, "global       "+c.name+" ") {
			return false, state
		}
		n, err := count(ctx, c)
		return err == nil && n > 0, fmt.Sprintf("%s has %d pages: %v", c.name, n, err)
	})
	fmt.Println(indent("$ corollary activation -c activation.yaml\n" + state))
	return err
}

// command runs corollary and returns what it prints.
func (d *demo) command(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, binary, args...).CombinedOutput()
	return string(out), err
}

// count is how many pages a cluster has.
func count(ctx context.Context, c *cluster) (int, error) {
	list, err := c.client.Resource(pages).Namespace("default").List(ctx, metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, err
	}
	if list == nil {
		return 0, nil
	}
	return len(list.Items), nil
}

// poll calls look until it returns true; at the deadline it returns the last reason.
func poll(ctx context.Context, look func() (bool, string)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		done, why := look()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", ctx.Err(), why)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func indent(text string) string {
	return "   " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n   ")
}

// stop ends everything.
func (d *demo) stop() error {
	var errs []error
	for _, c := range d.clusters {
		if c.process != nil {
			_ = c.process.Process.Signal(os.Interrupt)
			_ = c.process.Wait()
		}
		errs = append(errs, c.plane.Stop())
	}
	if d.lock != nil && d.lock.Process != nil {
		_ = d.lock.Process.Kill()
		_ = d.lock.Wait()
	}
	return errors.Join(errs...)
}
