//go:build controlplane

package charts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// kubelet is a fake: it takes the place of the nodes, the scheduler and the container runtime, which a control plane
// alone does not have. It runs the one container of each pod of a namespace as a process of this machine, of the real
// binary.
//
// Like a kubelet it mounts ConfigMaps by links that are swapped whole when they change, gives the process a token of
// the pod's ServiceAccount and nothing else to speak to the API server with, runs probes and reports phase and
// readiness, and ends a pod that is deleted by SIGTERM, then SIGKILL when its grace is over.
//
// Unlike a kubelet it has no images, no isolation and no network of pods: image, resources, security contexts and
// affinities are not looked at (the API server is asked about Pod Security elsewhere), mounts are directories whose
// path replaces mountPath in arguments and files, and each port of a container is another address of this machine,
// which replaces it in arguments as "=:PORT". The token comes in a kubeconfig, since the place where one is mounted is
// fixed.
type kubelet struct {
	t         testing.TB
	client    kubernetes.Interface
	namespace string
	binary    string
	dir       string

	mu   sync.Mutex
	pods map[types.UID]*runningPod
	held bool // whether mounts of pods that run stay as they are
}

// syncEvery is how often the double looks. A kubelet takes up to a minute or two until a changed ConfigMap is mounted.
const syncEvery = 100 * time.Millisecond

// startKubelet runs the pods of a namespace until the test ends.
func startKubelet(t testing.TB, namespace, binary string) *kubelet {
	t.Helper()
	client := must.Get(kubernetes.NewForConfig(testkit.Config(t))).In(t)
	k := &kubelet{t: t, client: client, namespace: namespace, binary: binary, dir: t.TempDir(), pods: map[types.UID]*runningPod{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(syncEvery); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
				k.sync(ctx)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		for _, p := range k.pods {
			p.kill()
			if t.Failed() {
				t.Logf("what pod %s wrote:\n%s", p.pod.Name, p.log())
			}
		}
	})
	return k
}

// holdMounts has pods that run keep their mounts as they are, until it is let go of.
func (k *kubelet) holdMounts(held bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held = held
}

// sync looks at every pod once.
func (k *kubelet) sync(ctx context.Context) {
	list, err := k.client.CoreV1().Pods(k.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return // known at the next look
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range list.Items {
		pod := &list.Items[i]
		if err := k.syncPod(ctx, pod); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			k.t.Errorf("running pod %s: %v", pod.Name, err)
		}
	}
	for uid, p := range k.pods {
		if !slices.ContainsFunc(list.Items, func(pod corev1.Pod) bool { return pod.UID == uid }) && !p.gone {
			p.gone = true
			p.kill()
		}
	}
}

func (k *kubelet) syncPod(ctx context.Context, pod *corev1.Pod) error {
	p := k.pods[pod.UID]
	switch {
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		if pod.DeletionTimestamp != nil {
			return k.remove(ctx, pod)
		}
		return nil
	case p == nil && pod.DeletionTimestamp != nil:
		return k.remove(ctx, pod)
	case p == nil:
		return k.admit(ctx, pod)
	case pod.DeletionTimestamp != nil:
		if p.terminate(pod.DeletionTimestamp.Time) {
			return k.remove(ctx, pod)
		}
		return nil
	}
	if !k.held {
		if err := k.mount(ctx, p); err != nil {
			return err
		}
	}
	if ended, code := p.ended(); ended {
		return k.exited(ctx, p, pod, code)
	}
	return k.report(ctx, pod, corev1.PodRunning, p.ready(), nil)
}

// admit binds a pod to a node, which gives it a graceful end, mounts its volumes and starts its container.
func (k *kubelet) admit(ctx context.Context, pod *corev1.Pod) error {
	if pod.Spec.NodeName == "" {
		return k.client.CoreV1().Pods(k.namespace).Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: "double"}},
			metav1.CreateOptions{})
	}
	if n := len(pod.Spec.Containers) + len(pod.Spec.InitContainers); n != 1 {
		return fmt.Errorf("it has %d containers, and this double runs one", n)
	}
	dir := filepath.Join(k.dir, string(pod.UID))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	p := &runningPod{pod: pod, dir: dir, ports: map[int32]string{}}
	if err := k.mount(ctx, p); err != nil {
		return err
	}
	if err := k.authenticate(ctx, p); err != nil {
		return err
	}
	// Images are pulled for longer than it takes until the rights are in force that were granted before.
	if err := testkit.RightsInForce(ctx); err != nil {
		return err
	}
	if err := p.start(k.binary); err != nil {
		return err
	}
	k.pods[pod.UID] = p
	return k.report(ctx, pod, corev1.PodRunning, false, nil)
}

// exited reports a container that has ended by itself. One that should run forever fails the test.
func (k *kubelet) exited(ctx context.Context, p *runningPod, pod *corev1.Pod, code int) error {
	if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		if !p.gone {
			p.gone = true
			k.t.Errorf("pod %s ended with %d", pod.Name, code)
		}
		return nil
	}
	phase := corev1.PodSucceeded
	if code != 0 {
		phase = corev1.PodFailed
	}
	//nolint:gosec // an exit code is a byte
	return k.report(ctx, pod, phase, false, &corev1.ContainerStateTerminated{ExitCode: int32(code), FinishedAt: metav1.Now()})
}

// report writes a pod's status where it has changed.
func (k *kubelet) report(ctx context.Context, pod *corev1.Pod, phase corev1.PodPhase, ready bool,
	ended *corev1.ContainerStateTerminated) error {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	if pod.Status.Phase == phase && len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].Ready == ready {
		return nil
	}
	pod = pod.DeepCopy()
	pod.Status.Phase = phase
	pod.Status.Conditions = nil
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		c := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}
		if kind == corev1.ContainersReady || kind == corev1.PodReady {
			c.Status = status
		}
		pod.Status.Conditions = append(pod.Status.Conditions, c)
	}
	state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	if ended != nil {
		state = corev1.ContainerState{Terminated: ended}
	}
	container := pod.Spec.Containers[0]
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container.Name, Image: container.Image, Ready: ready, State: state}}
	_, err := k.client.CoreV1().Pods(k.namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// remove takes a pod away whose process has ended.
func (k *kubelet) remove(ctx context.Context, pod *corev1.Pod) error {
	now := int64(0)
	err := k.client.CoreV1().Pods(k.namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now,
		Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// mount writes the container's volumes, and swaps what has changed.
func (k *kubelet) mount(ctx context.Context, p *runningPod) error {
	for _, volume := range p.pod.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			if err := k.mountClaim(volume.PersistentVolumeClaim.ClaimName, filepath.Join(p.dir, volume.Name)); err != nil {
				return err
			}
			continue
		}
		files := map[string]string{}
		var errs []error
		switch {
		case volume.ConfigMap != nil:
			errs = append(errs, k.project(ctx, volume.ConfigMap.Name, volume.ConfigMap.Items, files))
		case volume.Projected != nil:
			for _, source := range volume.Projected.Sources {
				if source.ConfigMap == nil {
					return fmt.Errorf("volume %s projects what this double does not know", volume.Name)
				}
				errs = append(errs, k.project(ctx, source.ConfigMap.Name, source.ConfigMap.Items, files))
			}
		case volume.Secret != nil:
			errs = append(errs, k.projectSecret(ctx, volume.Secret.SecretName, files))
		default:
			return fmt.Errorf("volume %s is of a kind that this double does not know", volume.Name)
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
		for name, text := range files {
			files[name] = p.here().Replace(text)
		}
		if err := swapIn(filepath.Join(p.dir, volume.Name), files); err != nil {
			return err
		}
	}
	return nil
}

// claim is the directory of a claim, which need not exist in the API server.
func (k *kubelet) claim(name string) string { return filepath.Join(k.dir, "claim-"+name) }

func (k *kubelet) mountClaim(name, at string) error {
	if err := os.MkdirAll(k.claim(name), 0o700); err != nil {
		return err
	}
	if err := os.Symlink(k.claim(name), at); !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// project adds the files that a ConfigMap gives.
func (k *kubelet) project(ctx context.Context, name string, items []corev1.KeyToPath, files map[string]string) error {
	cm, err := k.client.CoreV1().ConfigMaps(k.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(items) == 0 {
		for key, text := range cm.Data {
			files[key] = text
		}
		return nil
	}
	for _, item := range items {
		text, ok := cm.Data[item.Key]
		if !ok {
			return fmt.Errorf("ConfigMap %s has no key %s", name, item.Key)
		}
		files[item.Path] = text
	}
	return nil
}

// projectSecret adds the files that a Secret gives.
func (k *kubelet) projectSecret(ctx context.Context, name string, files map[string]string) error {
	secret, err := k.client.CoreV1().Secrets(k.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for key, text := range secret.Data {
		files[key] = string(text)
	}
	return nil
}

// swapIn has a directory show just these files, as a kubelet does it: they are in a directory of their own, ..data is
// a link to it that is replaced at one go, and each name at the top is a link through that.
func swapIn(dir string, files map[string]string) error {
	if same(filepath.Join(dir, "..data"), files) {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(dir, "..fresh")
	if err != nil {
		return err
	}
	tops := map[string]bool{}
	for name, text := range files {
		path := filepath.Join(fresh, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			return err
		}
		top, _, _ := strings.Cut(name, "/")
		tops[top] = true
	}
	before, _ := os.Readlink(filepath.Join(dir, "..data"))
	next := filepath.Join(dir, "..data_tmp")
	if err := errors.Join(os.Symlink(filepath.Base(fresh), next), os.Rename(next, filepath.Join(dir, "..data"))); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), "..") && !tops[entry.Name()] {
			err = errors.Join(err, os.Remove(filepath.Join(dir, entry.Name())))
		}
		delete(tops, entry.Name())
	}
	for top := range tops {
		err = errors.Join(err, os.Symlink(filepath.Join("..data", top), filepath.Join(dir, top)))
	}
	if before != "" {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, before)))
	}
	return err
}

// same reports whether a directory holds just these files.
func same(dir string, files map[string]string) bool {
	n := 0
	err := filepath.WalkDir(dir+"/", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		text, err := os.ReadFile(path)
		if want, ok := files[name]; err != nil || !ok || want != string(text) {
			return errors.Join(err, os.ErrNotExist)
		}
		n++
		return nil
	})
	return err == nil && n == len(files)
}
