//go:build controlplane

package clusters

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/controlplane"
)

// operator is a process with the configs in a directory, which is started again whenever it ends, as Kubernetes would.
type operator struct {
	test *testing.T
	dir  string
	// start returns the arguments of the nth start, and what becomes of each line of its log.
	start func(n int) (args []string, log func(line string))

	mu      sync.Mutex
	process *exec.Cmd
	started int
	wanted  bool
	left    chan struct{} // closed once nobody starts it any more
}

func newOperator(t *testing.T, config *rest.Config, start func(n int) ([]string, func(string))) *operator {
	t.Helper()
	o := &operator{test: t, dir: t.TempDir(), start: start}
	kubeconfig, err := controlplane.Kubeconfig(config)
	must(t, err)
	write(t, o.dir, "kubeconfig", string(kubeconfig))
	t.Cleanup(func() { o.leave(syscall.SIGKILL) })
	return o
}

func (o *operator) join() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wanted, o.left = true, make(chan struct{})
	go o.supervise(o.left)
}

func (o *operator) supervise(left chan struct{}) {
	defer close(left)
	for {
		o.mu.Lock()
		if !o.wanted {
			o.mu.Unlock()
			return
		}
		p, err := o.run()
		o.process = p
		o.mu.Unlock()
		if err != nil {
			o.test.Error(err)
			return
		}
		_ = p.Wait()
		<-time.After(300 * time.Millisecond)
	}
}

func (o *operator) run() (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	o.started++
	args, log := o.start(o.started)
	p := exec.Command(self, append([]string{"run", "-c", o.dir, "--kubeconfig", filepath.Join(o.dir, "kubeconfig"),
		"--as-group", "system:masters", "--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--reload-interval", "0"}, args...)...)
	p.Env = append(os.Environ(), asCommand+"=1")
	p.Stderr = &lines{to: log}
	return p, p.Start()
}

// leave ends the process, and waits until it has ended.
func (o *operator) leave(s syscall.Signal) {
	o.mu.Lock()
	o.wanted = false
	left := o.left
	o.mu.Unlock()
	if left == nil {
		return
	}
	o.signal(syscall.SIGCONT)
	o.signal(s)
	<-left
}

func (o *operator) signal(s syscall.Signal) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.process != nil && o.process.Process != nil {
		_ = o.process.Process.Signal(s)
	}
}

// lines hands on what is written, line by line.
type lines struct {
	rest string
	to   func(line string)
}

func (l *lines) Write(data []byte) (int, error) {
	l.rest += string(data)
	for {
		line, rest, ok := strings.Cut(l.rest, "\n")
		if !ok {
			return len(data), nil
		}
		l.to(line)
		l.rest = rest
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

// inNamespace creates a namespace and returns a client.
func inNamespace(t *testing.T, config *rest.Config, name string) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}}
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	_, err = client.Resource(namespaces).Create(t.Context(), namespace, metav1.CreateOptions{})
	must(t, err)
	return client
}
