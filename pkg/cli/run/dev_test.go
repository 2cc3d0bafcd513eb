package run

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/cli/command"
)

const greetings = `
apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: greeting}
watch:
  apiVersion: test.example.com/v1
  kind: Greeting
  schema: {spec: {text: string}}
downstreams:
  - name: config
    apiVersion: v1
    kind: ConfigMap
    template: |
      metadata: {name: {{ .metadata.name }}}
      data: {text: {{ .spec.text }}}
conventions:
  fieldManager: greeting
  labels: {test.example.com/managed-by: greeting}
  hash: {annotation: test.example.com/hash}
status:
  conditions: {ready: Ready}
`

// dev is the command at work.
type dev struct {
	t      *testing.T
	config *rest.Config
	dynamic.Interface
	ended chan error
}

// startDev runs the command until the context ends, and returns once its API server listens.
func startDev(ctx context.Context, t *testing.T, args ...string) *dev {
	t.Helper()
	read, write := io.Pipe()
	cmd := NewDev(command.IO{In: strings.NewReader(""), Out: write, Err: t.Output()})
	cmd.SetArgs(args)
	cmd.SilenceUsage = true
	d := &dev{t: t, ended: make(chan error, 1)}
	go func() {
		err := cmd.ExecuteContext(ctx)
		_ = write.CloseWithError(io.EOF)
		d.ended <- err
	}()
	printed := bufio.NewScanner(read)
	for d.config == nil && printed.Scan() {
		if _, path, ok := strings.Cut(printed.Text(), "export KUBECONFIG="); ok {
			d.config = must.Get(clientcmd.BuildConfigFromFlags("", path)).In(t)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, read) }()
	if d.config == nil {
		t.Fatalf("it prints no kubeconfig: %v", <-d.ended)
	}
	d.Interface = must.Get(dynamic.NewForConfig(d.config)).In(t)
	return d
}

var (
	greetingsOf  = schema.GroupVersionResource{Group: "test.example.com", Version: "v1", Resource: "greetings"}
	configMapsOf = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// eventually waits until the ConfigMap of the Greeting satisfies a condition; nil: there is none.
func (d *dev) eventually(is func(*unstructured.Unstructured) bool) {
	d.t.Helper()
	testkit.Eventually(d.t, testkit.Patience, func() (bool, string) {
		u, err := d.Resource(configMapsOf).Namespace("default").Get(d.t.Context(), "hello", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return is(nil), "there is no ConfigMap"
		}
		return err == nil && is(u), "the ConfigMap is another one"
	})
}

func has(path []string, want string) func(*unstructured.Unstructured) bool {
	return func(u *unstructured.Unstructured) bool {
		if u == nil {
			return false
		}
		text, _, _ := unstructured.NestedString(u.Object, path...)
		return text == want
	}
}

// TestDev: kubectl's client finds the kind of the config, an object has what follows from it, a changed config is taken
// at once, its kind included, and a deletion cleans up. At the end nothing is left.
func TestDev(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conf, kubeconfig := filepath.Join(dir, "operator.yaml"), filepath.Join(dir, "kubeconfig")
	must.Do(t, os.WriteFile(conf, []byte(greetings), 0o600))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	d := startDev(ctx, t, "-c", conf, "--write-kubeconfig", kubeconfig)
	objects := d.Resource(greetingsOf).Namespace("default")
	apply := func(text string) {
		t.Helper()
		u := &unstructured.Unstructured{}
		must.Do(t, yaml.Unmarshal([]byte("{apiVersion: test.example.com/v1, kind: Greeting, metadata: {name: hello}, spec: "+text+"}"), &u.Object))
		testkit.Eventually(t, testkit.Patience, func() (bool, string) {
			if len(d.ended) > 0 {
				t.Fatalf("it has ended: %v", <-d.ended)
			}
			_, err := objects.Apply(ctx, "hello", u, metav1.ApplyOptions{FieldManager: "me", Force: true})
			return err == nil, fmt.Sprint("it is refused: ", err)
		})
	}
	apply("{text: hello}")
	d.eventually(has([]string{"data", "text"}, "hello"))

	changed := strings.NewReplacer("{text: string}", "{text: string, to: string}", "data: {text:", "data: {to: {{ .spec.to }}, text:").Replace(greetings)
	must.Do(t, os.WriteFile(conf, []byte(changed), 0o600))
	apply("{text: hello, to: world}")
	d.eventually(has([]string{"data", "to"}, "world"))

	must.Do(t, objects.Delete(ctx, "hello", metav1.DeleteOptions{}))
	d.eventually(func(u *unstructured.Unstructured) bool { return u == nil })

	stop()
	if err := <-d.ended; err != nil {
		t.Errorf("it ends with %v", err)
	}
	if _, err := os.Stat(kubeconfig); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig is left: %v", err)
	}
}

// TestDevIsPrivate: without the token nothing is answered, whatever a page in a browser sends.
func TestDevIsPrivate(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "operator.yaml")
	must.Do(t, os.WriteFile(conf, []byte(greetings), 0o600))
	d := startDev(t.Context(), t, "-c", conf)
	stranger := rest.AnonymousClientConfig(d.config)
	client := must.Get(rest.HTTPClientFor(stranger)).In(t)
	for _, path := range []string{"/api/v1/secrets", "/version", "/"} {
		request := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, d.config.Host+path, nil)).In(t)
		request.Header.Set("Origin", "https://example.com")
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text := must.Get(io.ReadAll(response.Body)).In(t)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized || strings.Contains(string(text), "items") {
			t.Errorf("%s is answered %d to a stranger: %s", path, response.StatusCode, text)
		}
	}
}

// TestDevRefuses says what is wrong with its flags, and overwrites nothing.
func TestDevRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conf, taken := filepath.Join(dir, "operator.yaml"), filepath.Join(dir, "kubeconfig")
	must.Do(t, os.WriteFile(conf, []byte(greetings), 0o600))
	must.Do(t, os.WriteFile(taken, []byte("of another cluster"), 0o600))
	for _, test := range []struct{ flag, value, says string }{
		{"--bind-address", "0.0.0.0:0", "is not a loopback address"},
		{"--write-kubeconfig", taken, "file exists"},
		{"--crds", filepath.Join(dir, "none.yaml"), "no such file"},
	} {
		cmd := NewDev(command.IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		cmd.SetArgs([]string{"-c", conf, test.flag, test.value})
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s %s: %v", test.flag, test.value, err)
		}
	}
	if text := must.Get(os.ReadFile(taken)).In(t); string(text) != "of another cluster" {
		t.Errorf("the kubeconfig of another cluster is %s now", text)
	}
}
