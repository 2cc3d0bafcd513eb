package sim_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/must"
)

var jobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}

// backedUp is a deletion.before that makes a Job.
const backedUp = `  before:
    apiVersion: batch/v1
    kind: Job
    when: self.spec.?exposed != optional.of(true)
    template: |
      metadata: {name: "{{ .metadata.name }}-backup"}
      spec: {template: {spec: {restartPolicy: Never, containers: [{name: backup, image: backup}]}}}
    doneWhen: downstream.?status.?succeeded.orValue(0) > 0
`

// A backup that has begun is not abandoned because the config changes: the downstreams stay until it has finished, or a
// person says so.
func TestBeforeOutlivesItsConfig(t *testing.T) {
	without := func(s string) string { return strings.Replace(s, backedUp, "", 1) }
	configMap := func(s string) string {
		return strings.NewReplacer("apiVersion: batch/v1", "apiVersion: v1", "kind: Job", "kind: ConfigMap",
			"      spec: {template", "      data: {x: y} #", "downstream.?status.?succeeded.orValue(0) > 0",
			"downstream.?data.?done.hasValue()\n    onFailure: Proceed").Replace(s)
	}
	complete := `{"status":{"succeeded":1,"conditions":[{"type":"Complete","status":"True"}]}}`
	const finished = `{"status":{"downstreams":[{"name":"deletion.before","state":"BeforeFinished"}]}}`
	failed := `{"status":{"conditions":[{"type":"Failed","status":"True"}]}}`
	for _, row := range []struct {
		name, reason string
		change       func(conf string) string
		job          string // what becomes of the Job then; "gone" if it is removed by force
		held, goes   string // what Ready says while the Job runs, and after that, until a person acts; empty for gone
	}{
		{"removed", "a Job tells by itself that it has finished", without, complete, "BeforeRunning", ""},
		{"removed, failed", "the policy is not known any more: a person decides", without, failed, "BeforeRunning", "BeforeFailed"},
		{"removed, gone", "nobody knows whether it had finished", without, "gone", "BeforeRunning", "BeforeFailed"},
		{"another kind", "what the first one made is not what the second one would have made", configMap, complete, "BeforeRunning", ""},
		{"another kind, failed", "onFailure of the second one says nothing of the first", configMap, failed, "BeforeRunning", "BeforeFailed"},
		{"when is false", "what has begun goes on", func(s string) string {
			return strings.Replace(s, "self.spec.?exposed != optional.of(true)", "1 == 2", 1)
		}, complete, "BeforeRunning", ""},
		{"another name", "likewise", func(s string) string { return strings.Replace(s, "-backup", "-other", 1) }, complete, "BeforeRunning", ""},
		{"wait removed", "the order of the rest has nothing to do with it", func(s string) string {
			return strings.Replace(s, "  wait: true\n", "", 1)
		}, complete, "BeforeRunning", ""},
		{"finalizer removed", "a config without a finalizer leaves an upstream that has one alone", func(s string) string {
			return strings.NewReplacer("  finalizer: sim.example.com/cleanup\n", "",
				"  wait: true\n", "  propagation: Background\n").Replace(without(s))
		}, "", "BeforeRunning", "BeforeRunning"},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(row.name+map[bool]string{true: ", restart"}[restart], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					runBefore(t, restart, row.change, func(ctx context.Context, w *world) {
						w.expectHeld(ctx, row.reason, row.held)
						w.endJob(ctx, row.job)
						wait(2 * time.Minute)
						w.cluster.CollectGarbage()
						wait(time.Minute) // else the operator may write what it says of that over what the person writes
						if row.goes != "" {
							w.expectHeld(ctx, row.reason, row.goes)
						}
						if row.job == "" {
							return
						}
						if row.goes != "" {
							must.Do(t, w.merge(ctx, w.widget("a", 1, nil), finished, "status"))
							wait(2 * time.Minute)
							w.cluster.CollectGarbage()
						}
						if _, err := w.users.Resource(configMaps).Namespace("ns").Get(ctx, "a", getOptions); err == nil {
							t.Errorf("%s: the downstream is still there\n%s", row.reason, strings.Join(w.trace, "\n"))
						}
					})
				})
			})
		}
	}
}

// runBefore deletes an upstream whose deletion.before runs, changes the config, and has check look at the world.
func runBefore(t *testing.T, restart bool, change func(conf string) string, check func(context.Context, *world)) {
	w := newWorld(t, Schedule{Setup: Setup{Wait: true}, Faults: &[]Fault{}, Prompt: true})
	conf := strings.Replace(w.Setup.config(w.variant), "  wait: true\n", "  wait: true\n"+backedUp, 1)
	w.setConfig(conf)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	r := w.replicas[0]
	done := make(chan struct{})
	go func() { defer close(done); r.run(ctx) }()
	wait(5 * time.Second)
	u := w.widget("a", 1, nil)
	must.Do(t, w.apply(ctx, u))
	wait(5 * time.Second)
	must.Do(t, w.of(u).Delete(ctx, "a", metav1.DeleteOptions{}))
	wait(5 * time.Second)
	w.expectHeld(ctx, "at first", "BeforeRunning")
	changed := change(conf)
	if changed == conf {
		t.Fatal("the config is the same")
	}
	w.setConfig(changed)
	if _, problems := w.load(); len(problems) > 0 {
		t.Fatal(problems)
	}
	if restart {
		r.alive().kill()
	} else {
		r.reload(ctx)
	}
	wait(2 * time.Minute)
	check(ctx, w)
	if p := r.alive(); p != nil {
		p.kill()
	}
	end()
	<-done
}

func (w *world) setConfig(text string) {
	must.Do(w.t, os.WriteFile(filepath.Join(w.dir, "config.yaml"), []byte(text), 0o600))
}

// expectHeld checks that the upstream and its downstream stand, and what Ready says.
func (w *world) expectHeld(ctx context.Context, reason, ready string) {
	w.t.Helper()
	if _, err := w.users.Resource(configMaps).Namespace("ns").Get(ctx, "a", getOptions); err != nil {
		w.t.Fatalf("%s: the downstream: %v\n%s", reason, err, strings.Join(w.trace, "\n"))
	}
	u, err := w.of(w.widget("a", 1, nil)).Get(ctx, "a", getOptions)
	if err != nil {
		w.t.Fatalf("%s: the upstream: %v", reason, err)
	}
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range list {
		if c := item.(map[string]any); c["type"] == "Ready" {
			w.logf("Ready is %v: %v", c["reason"], c["message"])
			if c["reason"] != ready {
				w.t.Errorf("%s: Ready is %v, want %s", reason, c, ready)
			}
		}
	}
}

// endJob has the Job finish, as its controller does, or removes it by force.
func (w *world) endJob(ctx context.Context, status string) {
	w.t.Helper()
	if status == "" {
		return
	}
	client := w.users.Resource(jobs).Namespace("ns")
	u, err := client.Get(ctx, "a-backup", getOptions)
	if err == nil && status == "gone" {
		if err = w.setFinalizers(ctx, u, nil); err == nil {
			err = client.Delete(ctx, u.GetName(), metav1.DeleteOptions{})
		}
	} else if err == nil {
		err = w.merge(ctx, u, status, "status")
	}
	if err != nil {
		w.t.Fatalf("%v\n%s", err, strings.Join(w.trace, "\n"))
	}
}
