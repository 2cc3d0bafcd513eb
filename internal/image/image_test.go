//go:build image && linux

package image

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// example is the config that the image runs, with its CRD and an object.
const example = "../../examples/configs/hello/"

// patience is the maximum wait for an expected event.
const patience = testkit.Patience

func TestMain(m *testing.M) {
	if text := os.Getenv(containerEnv); text != "" {
		fmt.Fprintln(os.Stderr, become(text))
		os.Exit(1)
	}
	testkit.Main(m, testkit.WithCRDs(example+"crd.yaml"))
}

// TestImage builds the image for this machine and runs it.
func TestImage(t *testing.T) {
	store := newStorage(t)
	store.makeStandIn(t)
	image := store.build(t, runtime.GOARCH)
	config, root := store.config(t, image), store.mount(t, image)
	t.Run("config", func(t *testing.T) { testConfig(t, config, runtime.GOARCH) })
	t.Run("files", func(t *testing.T) { testFiles(t, root) })
	t.Run("static", func(t *testing.T) { testStatic(t, root, runtime.GOARCH) })
	c := container{Root: root, Env: config.Config.Env, Args: config.Config.Entrypoint, Volumes: volumes(t)}
	if _, err := fmt.Sscanf(config.Config.User, "%d:%d", &c.UID, &c.GID); err != nil {
		t.Fatalf("the user is %q: %v", config.Config.User, err)
	}
	t.Run("version", func(t *testing.T) { testVersion(t, c) })
	t.Run("check", func(t *testing.T) { testCheck(t, c) })
	t.Run("writes", func(t *testing.T) { testWrites(t, c) })
	t.Run("run", func(t *testing.T) { testRun(t, c) })
}

// TestOtherPlatform builds the image for another platform, which takes minutes if nothing is compiled for it. It cannot
// run the program.
func TestOtherPlatform(t *testing.T) {
	arch := "arm64"
	if runtime.GOARCH == arch {
		arch = "amd64"
	}
	store := newStorage(t)
	store.makeStandIn(t)
	image := store.build(t, arch)
	root := store.mount(t, image)
	testConfig(t, store.config(t, image), arch)
	testFiles(t, root)
	testStatic(t, root, arch)
}

// volumes returns the mounts of the container: the example's config and a kubeconfig of the API server.
func volumes(t *testing.T) map[string]string {
	t.Helper()
	configs, access := t.TempDir(), t.TempDir()
	data := must.Get(os.ReadFile(example + "operator.yaml")).In(t)
	write(t, filepath.Join(configs, "hello.yaml"), data, 0o644)
	kubeconfig := must.Get(controlplane.Kubeconfig(testkit.Config(t))).In(t)
	write(t, filepath.Join(access, "kubeconfig"), kubeconfig, 0o644)
	return map[string]string{"/etc/corollary": configs, "/etc/access": access}
}

func testConfig(t *testing.T, image imageConfig, arch string) {
	config := image.Config
	must.Same(t, arch, image.Architecture, "the architecture")
	must.Same(t, "65532:65532", config.User, "the user", "Kubernetes' runAsNonRoot needs a number that is not 0")
	if !slices.Equal(config.Entrypoint, []string{"/corollary"}) || len(config.Cmd) > 0 {
		t.Errorf("what runs is %q %q", config.Entrypoint, config.Cmd)
	}
	const prefix = "org.opencontainers.image."
	for name, want := range map[string]string{"title": "corollary", "licenses": "Apache-2.0", "version": version, "revision": revision} {
		must.Same(t, want, config.Labels[prefix+name], "the label", name)
	}
	for _, name := range []string{"description", "source", "documentation"} {
		if config.Labels[prefix+name] == "" {
			t.Errorf("the label %s is empty", name)
		}
	}
}

// testFiles fails if there is any unknown file: a shell, a package manager, a library.
func testFiles(t *testing.T, root string) {
	modes := map[string]fs.FileMode{}
	must.Do(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		modes[strings.TrimPrefix(path, root)] = info.Mode()
		return err
	}))
	want := []string{"/LICENSE", "/corollary", "/etc/ssl/certs/ca-certificates.crt"}
	if got := slices.Sorted(maps.Keys(modes)); !slices.Equal(got, want) {
		t.Errorf("the files are %v", got)
	}
	if mode := modes["/corollary"]; !mode.IsRegular() || mode.Perm()&0o022 != 0 || mode.Perm()&0o001 == 0 {
		t.Errorf("the program's mode is %s", mode)
	}
	if data, err := os.ReadFile(filepath.Join(root, want[2])); err != nil || string(data) != certificates {
		t.Errorf("the certificates are %q, %v", data, err)
	}
}

// testStatic fails if the program needs a loader or a library.
func testStatic(t *testing.T, root, arch string) {
	file := must.Get(elf.Open(filepath.Join(root, "corollary"))).In(t)
	defer func() { _ = file.Close() }()
	must.Same(t, map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch], file.Machine, "the machine")
	for _, program := range file.Progs {
		if program.Type == elf.PT_INTERP || program.Type == elf.PT_DYNAMIC {
			t.Errorf("it has a header %s: it is not static", program.Type)
		}
	}
}

func testVersion(t *testing.T, c container) {
	for _, uid := range []int{c.UID, 1000700000} { // the image's own user, and one from OpenShift
		c.UID = uid
		out, code := c.output(t, "version")
		for _, want := range []string{version, revision, date} {
			if code != 0 || !strings.Contains(out, want) {
				t.Errorf("as user %d: exit code %d: it does not tell %s:\n%s", uid, code, want, out)
			}
		}
	}
}

func testCheck(t *testing.T, c container) {
	if out, code := c.output(t, "check", "-c", "/etc/corollary"); code != 0 {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// testWrites checks that the container is as read-only as the other tests assume.
func testWrites(t *testing.T, c container) {
	out, code := c.output(t, "init", "--kind", "Thing.v1.example.com", "--from", "/etc/corollary/hello.yaml", "--dir", "/here")
	if code == 0 || !strings.Contains(out, "read-only file system") {
		t.Errorf("exit code %d: something was written:\n%s", code, out)
	}
	c.Args = []string{"/bin/sh"}
	if out, code := c.output(t, "-c", "true"); code == 0 || !strings.Contains(out, "no such file") {
		t.Errorf("exit code %d: there is a shell:\n%s", code, out)
	}
}

// testRun runs the program with an API server: it becomes ready, creates the downstream, and ends successfully on
// SIGTERM.
func testRun(t *testing.T, c container) {
	probes, metrics := testkit.FreeAddress(t), testkit.FreeAddress(t)
	c.Args = append(c.Args, "run", "-c", "/etc/corollary", "--kubeconfig", "/etc/access/kubeconfig",
		"--health-probe-bind-address", probes, "--metrics-bind-address", metrics)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	command := c.command(ctx, t)
	var log bytes.Buffer
	command.Stdout, command.Stderr = &log, &log
	must.Do(t, command.Start())
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	eventually(t, ended, &log, func() (bool, string) { return answers("http://" + probes + "/readyz") })
	testPrivileges(t, command.Process.Pid, c)
	eventually(t, ended, &log, func() (bool, string) { return answers("http://" + metrics + "/metrics") })
	namespace := testkit.Namespace(t)
	testkit.Apply(t, namespace, "{apiVersion: platform.example.com/v1, kind: WebApp, metadata: {name: web}, spec: {image: web}}")
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	eventually(t, ended, &log, func() (bool, string) {
		return testkit.Find(t, deployments, namespace, "web") != nil, "the Deployment is not there"
	})
	stop()
	if err := <-ended; command.ProcessState.ExitCode() != 0 {
		t.Errorf("it ends with %v:\n%s", err, log.Bytes())
	}
}

// testPrivileges checks in the kernel that the process has no privileges.
func testPrivileges(t *testing.T, pid int, c container) {
	data := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))).In(t)
	id := func(n int) string { return strings.TrimSpace(strings.Repeat(fmt.Sprintf("%d\t", n), 4)) }
	const none = "0000000000000000"
	for name, want := range map[string]string{
		"Uid": id(c.UID), "Gid": id(c.GID), "Groups": "", "NoNewPrivs": "1",
		"CapPrm": none, "CapEff": none, "CapInh": none, "CapAmb": none, "CapBnd": none,
	} {
		_, rest, _ := strings.Cut(string(data), "\n"+name+":")
		if got, _, _ := strings.Cut(rest, "\n"); strings.TrimSpace(got) != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
}

// eventually is testkit.Eventually for a process that may end early.
func eventually(t *testing.T, ended chan error, log *bytes.Buffer, condition func() (bool, string)) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		select {
		case err := <-ended:
			t.Fatalf("it has ended: %v\n%s", err, log.Bytes())
		default:
		}
		return condition()
	})
}

// answers reports whether a GET of the address returns 200.
func answers(url string) (ok bool, why string) {
	response, err := http.Get(url)
	if err != nil {
		return false, err.Error()
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK, url + " answers " + response.Status
}
