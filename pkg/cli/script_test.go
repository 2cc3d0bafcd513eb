package cli_test

import (
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/cli"
)

// asCommand is the variable that makes the test binary behave as the corollary binary, so that tests run it as a
// process of its own: exit codes and signals are real.
const asCommand = "TEST_AS_COROLLARY"

// runAsCommand does what main does where the test binary was started as the command. TestMain calls it first.
func runAsCommand() {
	if os.Getenv(asCommand) != "" {
		os.Exit(cli.Main(os.Args[1:], cli.System()))
	}
}

// quickEnd has a process of the race detector's end at once: by default it waits a second for races to show, each time.
func quickEnd() string {
	return "GORACE=" + strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0")
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       golden.Updating(),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv(asCommand, "1")
			env.Setenv("HOME", env.WorkDir)
			env.Vars = append(env.Vars, quickEnd(), "GOGC=400")
			self, err := os.Executable()
			if err != nil {
				return err
			}
			env.Setenv("COMMAND", self) // to be linked to under other names
			// Nobody listens there: an offline command that asks an API server fails.
			env.Setenv("KUBECONFIG", env.WorkDir+"/nowhere.kubeconfig")
			env.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
			return os.WriteFile(env.WorkDir+"/nowhere.kubeconfig", kubeconfig("https://127.0.0.1:1"), 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"corollary": runCorollary, "exits": runExits},
	})
}

// runCorollary is the script command "corollary ARGS…"; with ! before it, it must fail with exit code 1.
func runCorollary(ts *testscript.TestScript, fail bool, args []string) {
	self, err := os.Executable()
	ts.Check(err)
	err = ts.Exec(self, args...)
	switch {
	case !fail && err != nil:
		ts.Fatalf("corollary %s: %v", strings.Join(args, " "), err)
	case fail && err == nil:
		ts.Fatalf("corollary %s: exit code 0, want 1", strings.Join(args, " "))
	case fail && err.Error() != "exit status 1":
		ts.Fatalf("corollary %s: %v, want exit status 1", strings.Join(args, " "), err)
	}
}

// runExits is the script command "exits CODE corollary ARGS…".
func runExits(ts *testscript.TestScript, _ bool, args []string) {
	self, err := os.Executable()
	ts.Check(err)
	if err := ts.Exec(self, args[2:]...); err == nil || err.Error() != "exit status "+args[0] {
		ts.Fatalf("%s: %v, want exit status %s", strings.Join(args[1:], " "), err, args[0])
	}
}

func kubeconfig(server string) []byte {
	return []byte(`apiVersion: v1
kind: Config
clusters: [{name: nowhere, cluster: {server: "` + server + `", insecure-skip-tls-verify: true}}]
users: [{name: nobody, user: {token: none}}]
contexts: [{name: nowhere, context: {cluster: nowhere, user: nobody}}]
current-context: nowhere
`)
}

// TestOfflineCommandsAskNobody runs the offline commands where every way to an API server leads to one listener, and
// sees that nobody came. That the ways do lead there, check --live shows.
func TestOfflineCommandsAskNobody(t *testing.T) {
	t.Parallel()
	visitors, env := listen(t)
	config, cr := "../../testdata/widgets/operator.yaml", "../../testdata/widgets/cr.yaml"
	for _, args := range [][]string{
		{"check", "-c", config},
		{"check", "-c", config, "--crds", "../../testdata/widgets/crd.yaml"},
		{"render", "-c", config, "-f", cr, "--crds", "../../testdata/widgets/crd.yaml"},
		{"init", "--kind", "WebApp.v1.platform.example.com", "--from", "../../testdata/widgets/cr.yaml", "--dir", t.TempDir()},
		{"test", "../../examples/configs/hello"},
		{"generate", "crd-status", "-c", config}, {"generate", "rbac", "-c", config, "-n", "apps"},
		{"generate", "flowschema", "-c", config, "-n", "apps"}, {"generate", "argocd-health", "-c", config},
		{"generate", "policy", "-c", config, "--service-account", "a/b"},
		{"generate", "crd-validations", "-c", "../../examples/configs/webapp/operator.yaml", "--crds", "../../examples/configs/webapp/crd.yaml"},
		{"schema"}, {"version"}, {"completion", "bash"}, {"help"},
	} {
		if out, errs, code := execute(t, env, args...); code != 0 {
			t.Errorf("%v: exit code %d\n%s%s", args, code, out, errs)
		}
		if n := visitors(); n != 0 {
			t.Errorf("%v: %d connections were made", args, n)
		}
	}
	if _, _, code := execute(t, env, "check", "-c", config, "--live", "--request-timeout", "5s"); code != 1 || visitors() == 0 {
		t.Errorf("check --live: exit code %d and %d connections: the listener proves nothing", code, visitors())
	}
}

// listen starts a listener that hangs up, and returns how many have come, and variables that point kubeconfig, proxies
// and the in-cluster configuration to it.
func listen(t *testing.T) (visitors func() int, env []string) {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	came := make(chan struct{}, 1000)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			came <- struct{}{}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	file := t.TempDir() + "/kubeconfig"
	write(t, file, string(kubeconfig("https://"+l.Addr().String())))
	address := l.Addr().String()
	host, port, _ := net.SplitHostPort(address)
	return func() int { return len(came) }, []string{"KUBECONFIG=" + file,
		"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port,
		"HTTP_PROXY=http://" + address, "HTTPS_PROXY=http://" + address, "ALL_PROXY=http://" + address}
}

// place is where the commands of a test run: a kubeconfig, and a directory. Both may be empty.
type place struct{ kubeconfig, dir string }

var places sync.Map // of place, by the name of the test

// placeOf is the place of the test, or of the one that it is a part of.
func placeOf(t *testing.T) place {
	for name := t.Name(); name != "."; name = path.Dir(name) {
		if p, ok := places.Load(name); ok {
			return p.(place)
		}
	}
	return place{}
}

// connected makes the commands of this test ask the API server of this test.
func connected(t *testing.T) {
	t.Helper()
	places.Store(t.Name(), place{kubeconfig: testkit.Kubeconfig(t), dir: placeOf(t).dir})
	t.Cleanup(func() { places.Delete(t.Name()) })
}

// inDirectory makes a directory of the test's own. Its processes run there, and what run and split are given may be a
// file in it.
func inDirectory(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	places.Store(t.Name(), place{kubeconfig: placeOf(t).kubeconfig, dir: dir})
	t.Cleanup(func() { places.Delete(t.Name()) })
	return dir
}

// run runs the command and returns its exit code and everything that it wrote.
func run(t *testing.T, args ...string) (int, string) {
	t.Helper()
	out, errs, code := split(t, args...)
	return code, out + errs
}

// split is run with what was written to standard output and to standard error apart.
func split(t *testing.T, args ...string) (out, errs string, code int) {
	t.Helper()
	p, args := placeOf(t), slices.Clone(args)
	for i, name := range args {
		if p.dir != "" && exists(filepath.Join(p.dir, name)) {
			args[i] = filepath.Join(p.dir, name)
		}
	}
	if p.kubeconfig != "" && cli.Connects(args) && (args[0] != "check" || slices.Contains(args, "--live")) {
		args = append(args, "--kubeconfig", p.kubeconfig)
	}
	var stdout, stderr strings.Builder
	code = cli.Main(args, cli.IO{In: strings.NewReader(""), Out: &stdout, Err: &stderr, Env: os.Environ()})
	here := strings.NewReplacer()
	if p.dir != "" {
		here = strings.NewReplacer(p.dir+"/", "")
	}
	return here.Replace(stdout.String()), here.Replace(stderr.String()), code
}

// execute is split in a process, with these variables.
func execute(t *testing.T, env []string, args ...string) (out, errs string, code int) {
	t.Helper()
	self := must(os.Executable())(t)
	cmd := exec.CommandContext(t.Context(), self, args...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(append(os.Environ(), asCommand+"=1", quickEnd()), env...)
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// must is the value, unless there is an error, with which the test ends.
func must[T any](value T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		ok(t, err)
		return value
	}
}

// ok ends the test if there is an error.
func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// expect runs the command, which has to exit with this code and to print this text.
func expect(t *testing.T, wanted int, text string, args ...string) {
	t.Helper()
	if code, out := run(t, args...); code != wanted || !strings.Contains(out, text) {
		t.Errorf("%v: exit code %d, want %d and %q in\n%s", args, code, wanted, text, out)
	}
}
