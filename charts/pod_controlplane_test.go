//go:build controlplane

package charts

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// runningPod is a pod that the double runs.
type runningPod struct {
	pod   *corev1.Pod // as it was when it was admitted
	dir   string
	ports map[int32]string // of the container to the address on this machine
	gone  bool

	command *exec.Cmd
	waited  chan struct{} // closed when the process has ended
	asked   time.Time     // when it was asked to end
}

// authenticate asks for a token of the pod's ServiceAccount, which is good for as long as the pod is there, and writes
// a kubeconfig that knows nothing else.
func (k *kubelet) authenticate(ctx context.Context, p *runningPod) error {
	if mounts := p.pod.Spec.AutomountServiceAccountToken; mounts == nil || !*mounts {
		return fmt.Errorf("it mounts no token of its ServiceAccount")
	}
	token, err := k.client.CoreV1().ServiceAccounts(k.namespace).CreateToken(ctx, p.pod.Spec.ServiceAccountName,
		&authenticationv1.TokenRequest{
			Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{
				APIVersion: "v1", Kind: "Pod", Name: p.pod.Name, UID: p.pod.UID}}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	text, err := controlplane.Kubeconfig(&rest.Config{Host: testkit.Config(k.t).Host, BearerToken: token.Status.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: testkit.Config(k.t).CAData}})
	if err != nil {
		return err
	}
	return os.WriteFile(p.kubeconfig(), text, 0o600)
}

func (p *runningPod) kubeconfig() string { return filepath.Join(p.dir, "kubeconfig") }

// here replaces the paths of mounts by those of their directories. One may be the beginning of another.
func (p *runningPod) here() *strings.Replacer {
	mounts := slices.Clone(p.pod.Spec.Containers[0].VolumeMounts)
	slices.SortFunc(mounts, func(a, b corev1.VolumeMount) int { return len(b.MountPath) - len(a.MountPath) })
	var from []string
	for _, m := range mounts {
		from = append(from, m.MountPath, filepath.Join(p.dir, m.Name))
	}
	return strings.NewReplacer(from...)
}

// start starts the container's process.
func (p *runningPod) start(binary string) error {
	container := p.pod.Spec.Containers[0]
	var from []string
	for _, port := range container.Ports {
		address, err := controlplane.FreeAddress()
		if err != nil {
			return err
		}
		p.ports[port.ContainerPort] = address
		from = append(from, fmt.Sprintf("=:%d", port.ContainerPort), "="+address)
	}
	ports := strings.NewReplacer(from...)
	var args []string
	for _, arg := range container.Args {
		args = append(args, ports.Replace(p.here().Replace(arg)))
	}
	p.command = exec.Command(binary, args...)
	p.command.Env = []string{"KUBECONFIG=" + p.kubeconfig()}
	for _, e := range container.Env {
		p.command.Env = append(p.command.Env, e.Name+"="+e.Value)
	}
	output, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = output.Close() }() // the process has it by then
	p.command.Stdout, p.command.Stderr = output, output
	if err := p.command.Start(); err != nil {
		return err
	}
	waited := make(chan struct{})
	p.waited = waited
	go func() {
		defer close(waited)
		_ = p.command.Wait() // how it ended is asked of ProcessState
	}()
	return nil
}

func (p *runningPod) log() string {
	text, _ := os.ReadFile(filepath.Join(p.dir, "log")) // nothing was written where there is none
	return string(text)
}

// ended reports whether the process has ended, and how.
func (p *runningPod) ended() (bool, int) {
	select {
	case <-p.waited:
		return true, p.command.ProcessState.ExitCode()
	default:
		return false, 0
	}
}

// terminate asks the process to end, kills it when it has had its grace, and reports whether it has ended.
func (p *runningPod) terminate(until time.Time) bool {
	if ended, _ := p.ended(); ended {
		return true
	}
	if p.asked.IsZero() {
		p.asked = time.Now()
		_ = p.command.Process.Signal(syscall.SIGTERM) // an error means that it ends just now
	}
	if time.Now().After(until) {
		p.kill()
	}
	return false
}

func (p *runningPod) kill() {
	if ended, _ := p.ended(); !ended {
		_ = p.command.Process.Kill()
		<-p.waited
	}
}

// ready runs the readiness probe once, and holds the liveness probe to being well whenever that is.
func (p *runningPod) ready() bool {
	container := p.pod.Spec.Containers[0]
	return container.ReadinessProbe == nil || p.probe(container.ReadinessProbe) && p.probe(container.LivenessProbe)
}

func (p *runningPod) probe(probe *corev1.Probe) bool {
	get := probe.HTTPGet
	port := get.Port.IntVal
	for _, declared := range p.pod.Spec.Containers[0].Ports {
		if declared.Name == get.Port.StrVal {
			port = declared.ContainerPort
		}
	}
	client := &http.Client{Timeout: 10 * time.Second}
	response, err := client.Get("http://" + p.ports[port] + get.Path)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode < 400
}

// count is how many pods were run so far.
func (k *kubelet) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.pods)
}

// running is a pod that runs and has written that; nil if there is none.
func (k *kubelet) running(says string) *runningPod {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pods {
		if ended, _ := p.ended(); !ended && strings.Contains(p.log(), says) {
			return p
		}
	}
	return nil
}

// logOf is what pods wrote whose names begin so.
func (k *kubelet) logOf(prefix string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all strings.Builder
	for _, p := range k.pods {
		if strings.HasPrefix(p.pod.Name, prefix) {
			all.WriteString(p.log())
		}
	}
	return all.String()
}
