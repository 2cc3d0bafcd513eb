package compile_test

import (
	"fmt"
	"testing"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// slow is an expression with a loop: those have a limit of time.
const slow = "self.spec.list.map(x, x).size() > 0"

// listed is an upstream with a list.
func listed() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "tools.example.com/v1", "kind": "Thing",
		"metadata": map[string]any{"name": "a", "namespace": "b", "uid": "1"}, "spec": map[string]any{"list": make([]any, 1000)}}} // interruptions are looked for now and then
}

// onBusyMachine makes all evaluations with loops take too long until the test ends, which must not run beside others.
func onBusyMachine(t *testing.T) {
	t.Helper()
	before := rules.MaxTime
	rules.MaxTime = -time.Second
	t.Cleanup(func() { rules.MaxTime = before })
}

const tooLongConfig = `
apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: x}
watch: {apiVersion: tools.example.com/v1, kind: Thing}
downstreams:
  - name: page
    apiVersion: v1
    kind: ConfigMap
    template: '{metadata: {name: page}, data: {a: b}}'
    ready: {rules: [{rule: %q}], failed: [{rule: %q}]}
deletion:
  before: {apiVersion: v1, kind: ConfigMap, template: '{metadata: {name: before}}', doneWhen: %q, failedWhen: %q}
conventions:
  fieldManager: x
  labels: {a.example.com/x: x}
  hash: {annotation: a.example.com/hash}
  owner: {reference: true}
  finalizer: a.example.com/x
status: {conditions: {ready: Ready}, downstreams: .status.downstreams, fields: [{path: .status.field, value: %q}]}
`

func TestReportTookTooLong(t *testing.T) {
	for _, row := range []struct {
		reason, ready, failed, field string
		isReady                      metav1.ConditionStatus // on a busy machine
	}{
		{"a field of the status", "true", "false", slow, metav1.ConditionTrue},
		{"a rule of readiness", slow, "false", "true", metav1.ConditionFalse},
		{"a rule of failure: the object may have failed", "true", "!(" + slow + ")", "true", metav1.ConditionFalse},
	} {
		t.Run(row.reason, func(t *testing.T) {
			p := compileConfig(t, fmt.Sprintf(tooLongConfig, row.ready, row.failed, "true", "false", row.field))
			for _, want := range []bool{false, true} {
				if want {
					onBusyMachine(t)
				}
				up := listed()
				w := p.Render(t.Context(), up, desired.Inputs{})
				results := []operator.Result{{Outcome: operator.Outcome{State: operator.StateInSync},
					Live: &drift.Live{Identity: drift.Identity{UID: "1", Name: "page", Namespace: "b"}, Status: kstatus.CurrentStatus}}}
				report := p.Report(t.Context(), up, desired.Inputs{}, w, results, nil, nil, metav1.Now())
				if report.TookTooLong != want || w.TookTooLong() {
					t.Errorf("took too long: %v, want %v: %v", report.TookTooLong, want, report.Conditions)
				}
				if want && report.Verdict.Ready != row.isReady || !want && report.Verdict.Ready != metav1.ConditionTrue {
					t.Errorf("busy %v: %v", want, report.Conditions)
				}
			}
		})
	}
}

// A deletion does not go on, and is not held for good, because a machine was busy.
func TestDeletionTookTooLong(t *testing.T) {
	for _, row := range []struct {
		reason, done, failed string
		want                 operator.State // in time
	}{
		{"it may be done", slow, "!(" + slow + ")", operator.StateBeforeFinished},
		{"it may have failed", slow, slow, operator.StateBeforeFailed},
	} {
		t.Run(row.reason, func(t *testing.T) {
			p := compileConfig(t, fmt.Sprintf(tooLongConfig, "true", "false", row.done, row.failed, "true"))
			for _, busy := range []bool{false, true} {
				want := row.want
				if busy {
					onBusyMachine(t)
					want = operator.StateBeforeRunning
				}
				up, now := listed(), metav1.Now()
				up.SetDeletionTimestamp(&now)
				d := decide.Deletion(p.Settings, operator.Input{Upstream: up, HasFinalizer: true, Now: now.Time,
					Before: operator.BeforeFacts{Made: "2", Progress: p.BeforeProgress(up, desired.Inputs{}),
						Live: &drift.Live{Identity: drift.Identity{UID: "2", Name: "before", Namespace: "b"}, Deleting: busy}}})
				switch {
				case d.Before == nil || d.Before.State != want:
					t.Errorf("busy %v: %v", busy, d.Before)
				case busy && (d.Before.RequeueAfter == 0 || d.Before.RequeueAfter > time.Minute):
					t.Errorf("it is tried again after %s", d.Before.RequeueAfter)
				}
			}
		})
	}
}

// compileConfig compiles a config of kinds that every API server has, or of which no schema is known.
func compileConfig(t *testing.T, text string) *compile.Pipeline {
	t.Helper()
	p, errs := compiledText(t, text, compile.Options{})
	if errs != "" {
		t.Fatal(errs)
	}
	return p
}

// compiledText compiles the config operator.yaml, or says what is wrong with it. Without kinds in the options, they are
// those that every API server has.
func compiledText(t *testing.T, text string, o compile.Options) (*compile.Pipeline, string) {
	t.Helper()
	t.Chdir(t.TempDir()) // so that errors name the file alone
	write(t, "operator.yaml", text)
	var err error
	if o.Kinds == nil {
		if o.Kinds, err = kinds.Offline(); err != nil {
			t.Fatal(err)
		}
	}
	files, errs := load.Operators(load.Options{Files: []string{"operator.yaml"}})
	var p *compile.Pipeline
	if len(errs) == 0 {
		if p, errs, err = compile.One(files[0], o); err != nil {
			t.Fatal(err)
		}
	}
	if len(errs) > 0 {
		return nil, errs.Error()
	}
	return p, ""
}
