package cli_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/bubble"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/testkit"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	widgets    = schema.GroupVersionResource{Group: "tools.example.com", Version: "v1", Resource: "widgets"}
	leases     = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
)

const (
	operatorFile = "../../testdata/widgets/operator.yaml"
	patience     = testkit.Patience
	blueWidget   = "{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: one}, spec: {color: blue}}"
)

// ownConventions are those of a config for the namespace NS.
const ownConventions = `conventions:
  fieldManager: NS
  labels: {NS.example.com/managed: "yes"}
  hash: {annotation: NS.example.com/hash}
  owner: {annotation: NS.example.com/owner}
`

// process is the command running beside the test.
type process struct {
	*exec.Cmd
	stderr string // a file
	ended  chan struct{}
}

// start runs the command with these rights; it is killed when the test ends, if it still runs then.
func start(t *testing.T, cfg *rest.Config, args ...string) *process {
	t.Helper()
	return startWith(t, cfg, false, args...)
}

// startWriting is start where what is written to standard output counts, too.
func startWriting(t *testing.T, cfg *rest.Config, args ...string) *process {
	t.Helper()
	return startWith(t, cfg, true, args...)
}

func startWith(t *testing.T, cfg *rest.Config, output bool, args ...string) *process {
	t.Helper()
	self := must(os.Executable())(t)
	return startBinary(t, self, cfg, output, args...)
}

func startBinary(t *testing.T, binary string, cfg *rest.Config, output bool, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(binary, args...), stderr: filepath.Join(t.TempDir(), "stderr"), ended: make(chan struct{})}
	p.Dir = placeOf(t).dir
	p.Env = append(os.Environ(), asCommand+"=1", quickEnd(), "KUBECONFIG="+testkit.KubeconfigFor(t, cfg))
	file := must(os.Create(p.stderr))(t)
	defer func() { _ = file.Close() }() // the process has it by then
	p.Stderr = file
	if output {
		p.Stdout = file
	}
	ok(t, p.Start())
	go func() {
		_ = p.Wait() // how it ended is asked of ProcessState
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill() // it has usually ended before
		<-p.ended
		if t.Failed() {
			t.Logf("what %s wrote:\n%s", strings.Join(args, " "), p.text(t))
		}
	})
	return p
}

func (p *process) text(t *testing.T) string {
	t.Helper()
	data := read(t, p.stderr)
	return data
}

// wait returns the exit code.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	testkit.Closed(t, p.ended, func() string { return "it did not end:\n" + p.text(t) })
	return p.ProcessState.ExitCode()
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

func (p *process) interrupt(t *testing.T) {
	t.Helper()
	ok(t, p.Process.Signal(os.Interrupt))
}

// stop interrupts the process, which then ends without an error.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.interrupt(t)
	if code := p.wait(t); code != 0 {
		t.Errorf("exit code %d after an interrupt, want 0", code)
	}
}

// startRun runs the operator for one namespace.
func startRun(t *testing.T, cfg *rest.Config, namespace string, args ...string) *process {
	t.Helper()
	return start(t, cfg, append([]string{"run", "-c", operatorFile, "--set", "widgets:.watch.namespaces=[" + namespace + "]",
		"--metrics-bind-address", "0", "--health-probe-bind-address", "0"}, args...)...)
}

func eventuallyColor(t *testing.T, namespace, color string) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		cm := testkit.Find(t, configMaps, namespace, "one")
		if cm == nil {
			return false, "the ConfigMap is not there"
		}
		have, _, _ := unstructured.NestedString(cm.Object, "data", "color")
		return have == color, "its color is " + have
	})
}

// TestRunRefusesWithEveryError: if no config is good, run fails with errors of loading, of templates and of types that
// only the API server's schema shows.
func TestRunRefusesWithEveryError(t *testing.T) {
	t.Parallel()
	memory(t)
	p := start(t, testkit.Config(t), "run", "-c", "testdata/errors/untyped.yaml", "-c", "testdata/errors/strict.yaml")
	if code := p.wait(t); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	for _, want := range []string{
		"testdata/errors/strict.yaml:4: watcch: ",
		"testdata/errors/untyped.yaml:6: validate[0].rule: ",
		"testdata/errors/untyped.yaml:17: downstreams[0].template: ",
		"Error: ",
	} {
		if !strings.Contains(p.text(t), want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(p.text(t), `"msg":"starting"`) {
		t.Error("it started something")
	}
}

func TestRunServesHealthAndMetrics(t *testing.T) {
	t.Parallel()
	ns := memory(t)
	metrics, health := testkit.FreeAddress(t), testkit.FreeAddress(t)
	p := startRun(t, testkit.Config(t), ns, slices.Concat(steadyElection, []string{
		"--metrics-bind-address", metrics, "--health-probe-bind-address", health, "--leader-elect", "--leader-election-id", "observed",
		"-n", ns})...)
	for _, url := range []string{health + "/healthz", health + "/readyz", metrics + "/metrics"} {
		eventuallyAnswers(t, url, http.StatusOK)
	}
	for _, name := range []string{"corollary_operator_state{", "corollary_build_info{", "process_resident_memory_bytes ", "go_goroutines ",
		`leader_election_master_status{name="observed"} 1`} {
		eventuallyAnswers(t, metrics+"/metrics", http.StatusOK, "\n"+name)
	}
	q := start(t, testkit.Config(t), "run", "-c", operatorFile, "--metrics-bind-address", "0", "--health-probe-bind-address", health)
	if code := q.wait(t); code != 1 || !strings.Contains(q.text(t), "0 turns each off") {
		t.Errorf("a second one on the same address: exit code %d\n%s", code, q.text(t))
	}
	p.stop(t)
}

// TestRunElects: one of two works; when it is stopped it gives the Lease back and the other takes over at once.
func TestRunElects(t *testing.T) {
	t.Parallel()
	ns := memory(t)
	elect := slices.Concat(steadyElection, []string{"--leader-elect", "--leader-election-id", "widgets-leader", "-n", ns})
	metrics, others := testkit.FreeAddress(t), testkit.FreeAddress(t)
	first := startRun(t, testkit.Config(t), ns, slices.Concat(elect, []string{"--metrics-bind-address", metrics})...)
	holder := func() string {
		lease := testkit.Find(t, leases, ns, "widgets-leader")
		if lease == nil {
			return ""
		}
		name, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
		return name
	}
	testkit.Eventually(t, patience, func() (bool, string) { return holder() != "", "nobody holds the Lease" })
	leader := holder()
	second := startRun(t, testkit.Config(t), ns, elect...)
	standby := startRun(t, testkit.Config(t), ns, slices.Concat(elect, []string{"--metrics-bind-address", others})...)
	testkit.Apply(t, ns, blueWidget)
	eventuallyColor(t, ns, "blue")
	eventuallySays(t, standby, `"reason":"Standby"`)
	for address, status := range map[string]string{metrics: "1", others: "0"} {
		eventuallyAnswers(t, address+"/metrics", http.StatusOK, "\nleader_election_master_status{name=\"widgets-leader\"} "+status+"\n")
	}
	standby.stop(t)
	first.stop(t)
	if holder() == leader {
		t.Error("the leader kept the Lease: the next one waits until it runs out")
	}
	testkit.Eventually(t, patience, func() (bool, string) { return holder() != "" && holder() != leader, "the second does not lead" })
	testkit.Apply(t, ns, strings.ReplaceAll(blueWidget, "blue", "red"))
	eventuallyColor(t, ns, "red")
	second.stop(t)
	for _, line := range strings.Split(strings.TrimSpace(first.text(t)), "\n") {
		if !json.Valid([]byte(line)) {
			t.Errorf("a line of the log, client-go's election included, is not of the one logger: %s", line)
		}
	}
	if !strings.Contains(first.text(t), "Successfully acquired lease") {
		t.Error("client-go's log is missing")
	}
}

// TestRunWaitsForAKind: one that is not installed is not an error of the config, and holds up no other operator.
func TestRunWaitsForAKind(t *testing.T) {
	t.Parallel()
	ns := memory(t)
	p := startRun(t, testkit.Config(t), ns, "-c", "testdata/errors/gadgets.yaml")
	eventuallySays(t, p, `"operator":"gadgets","reason":"KindMissing"`)
	testkit.Apply(t, ns, blueWidget)
	eventuallyColor(t, ns, "blue")
	p.stop(t)
}

func eventuallySays(t *testing.T, p *process, text string) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) { return strings.Contains(p.text(t), text), "it did not say " + text })
}

// By steadyElection a Lease does not run out during a test: whoever takes it was handed it. A standby by nextElection
// is late if it asks for the Lease as often as it would renew it.
var (
	firstElection  = timings(leaseLength, renewDeadline, 500*time.Millisecond)
	nextElection   = timings(2*time.Hour, time.Hour, 40*time.Minute)
	steadyElection = timings(2*time.Hour, time.Hour, time.Second)
)

func timings(lease, deadline, retry time.Duration) []string {
	return []string{"--leader-election-lease-duration", lease.String(), "--leader-election-renew-deadline", deadline.String(),
		"--leader-election-retry-period", retry.String()}
}

// How long the Lease of a first leader is good for, where a test waits for its end, or for that of one that a busy
// machine was late to renew: whoever follows has more time. The deadline passes before a worker gives up what it has in
// hand, which it does after 20 s.
const (
	leaseLength   = 20 * time.Second
	renewDeadline = 15 * time.Second
)

// TestCheckLive: the API server's schemas type what no file describes.
func TestCheckLive(t *testing.T) {
	t.Parallel()
	memory(t)
	code, out := run(t, "check", "--live", "-c", operatorFile)
	for _, want := range []string{"upstream: Widget (tools.example.com/v1): namespaced, status subresource, typed\n",
		"downstream config: ConfigMap (v1): namespaced, typed\n"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, %q wanted in:\n%s", code, want, out)
		}
	}
	expect(t, 1, "did you mean color?", "check", "--live", "-c", "testdata/errors/untyped.yaml")
	expect(t, 0, "the API server has no kind Gadget", "check", "--live", "-c", "testdata/errors/gadgets.yaml")
}

// memory starts an API server in memory for this test alone, with the kind Widget, and returns a namespace.
func memory(t *testing.T) (ns string) {
	t.Helper()
	bubble.Listen(t, "../../testdata/widgets/crd.yaml")
	connected(t)
	return testkit.Namespace(t)
}
