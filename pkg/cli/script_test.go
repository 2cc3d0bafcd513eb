package cli_test

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/corollary-dev/corollary/internal/golden"
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
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       golden.Updating(),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv(asCommand, "1")
			env.Setenv("HOME", env.WorkDir)
			env.Vars = append(env.Vars, quickEnd())
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
	visitors := listen(t)
	config, cr := "testdata/offline/operator.yaml", "testdata/offline/cr.yaml"
	for _, args := range [][]string{
		{"check", "-c", config},
		{"check", "-c", config, "--crds", "testdata/offline/crd.yaml"},
		{"render", "-c", config, "-f", cr, "--crds", "testdata/offline/crd.yaml"},
		{"init", "--kind", "WebApp.v1.platform.example.com", "--from", "testdata/offline/cr.yaml", "--dir", t.TempDir()},
		{"test", "../../examples/configs/hello"},
		{"generate", "crd-status", "-c", config}, {"generate", "rbac", "-c", config, "-n", "apps"},
		{"generate", "flowschema", "-c", config, "-n", "apps"}, {"generate", "argocd-health", "-c", config},
		{"generate", "policy", "-c", config, "--service-account", "a/b"},
		{"generate", "crd-validations", "-c", "../../examples/configs/webapp/operator.yaml", "--crds", "../../examples/configs/webapp/crd.yaml"},
		{"schema"}, {"version"}, {"completion", "bash"}, {"help"},
	} {
		if code, out := run(t, args...); code != 0 {
			t.Errorf("%v: exit code %d\n%s", args, code, out)
		}
		if n := visitors(); n != 0 {
			t.Errorf("%v: %d connections were made", args, n)
		}
	}
	if code, _ := run(t, "check", "-c", config, "--live", "--request-timeout", "5s"); code != 1 || visitors() == 0 {
		t.Errorf("check --live: exit code %d and %d connections: the listener proves nothing", code, visitors())
	}
}

// listen starts a listener that hangs up, points kubeconfig, proxies and the in-cluster configuration to it, and returns
// how many have come.
func listen(t *testing.T) (visitors func() int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
	path := t.TempDir() + "/kubeconfig"
	if err := os.WriteFile(path, kubeconfig("https://"+l.Addr().String()), 0o600); err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(l.Addr().String())
	for name, value := range map[string]string{
		"KUBECONFIG": path, "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port,
		"HTTP_PROXY": "http://" + l.Addr().String(), "HTTPS_PROXY": "http://" + l.Addr().String(), "ALL_PROXY": "http://" + l.Addr().String(),
	} {
		t.Setenv(name, value)
	}
	return func() int { return len(came) }
}

// run runs the command in this process and returns its exit code and everything that it wrote.
func run(t *testing.T, args ...string) (int, string) {
	t.Helper()
	out, errs, code := split(t, args...)
	return code, out + errs
}

// split is run with what was written to standard output and to standard error apart.
func split(t *testing.T, args ...string) (out, errs string, code int) {
	t.Helper()
	var stdout, stderr strings.Builder
	code = cli.Main(args, cli.IO{In: strings.NewReader(""), Out: &stdout, Err: &stderr, Env: os.Environ()})
	return stdout.String(), stderr.String(), code
}
