//go:build controlplane

package apply

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestImmutableOrBad: a change that only a new object can have and one that no object can have are both refused with
// 422, but the probes differ.
func TestImmutableOrBad(t *testing.T) {
	service := `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: ADDRESS, ports: [{port: PORT}]}}`
	job := `{apiVersion: batch/v1, kind: Job, metadata: {name: web}, spec: {backoffLimit: LIMIT, template: {spec: {restartPolicy: Never, containers: [{name: a, image: IMAGE}]}}}}`
	widget := `{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: web}, spec: {sealed: SEAL, number: SIZE}}`
	singleton := `{apiVersion: tools.example.com/v1, kind: Singleton, metadata: {name: default}, spec: {sealed: SEAL, size: SIZE}}`
	fill := func(s string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(s) }
	cases := []struct {
		reason    string
		gvr       schema.GroupVersionResource
		name      string
		original  string
		immutable string
		bad       string
		generated bool // whether a generated name is allowed
	}{
		{reason: "a Deployment's selector", gvr: deployments, name: "web", generated: true, original: deployment,
			immutable: strings.ReplaceAll(deployment, "{app: web}", "{app: other}"),
			bad:       strings.ReplaceAll(deployment, "replicas: 3", "replicas: -1")},
		{reason: "a Service's address", gvr: services, name: "web", generated: true,
			original:  fill(service, "ADDRESS", "None", "PORT", "80"),
			immutable: fill(service, "ADDRESS", "10.0.0.77", "PORT", "80"),
			bad:       fill(service, "ADDRESS", "None", "PORT", "80000")},
		{reason: "a Job's template, in which the API server writes labels with the Job's name", gvr: jobs, name: "web", generated: true,
			original:  fill(job, "IMAGE", "a", "LIMIT", "1"),
			immutable: fill(job, "IMAGE", "b", "LIMIT", "1"),
			bad:       fill(job, "IMAGE", "a", "LIMIT", "-1")},
		{reason: "a transition rule of a CRD", gvr: widgets, name: "web", generated: true,
			original:  fill(widget, "SEAL", "a", "SIZE", "1"),
			immutable: fill(widget, "SEAL", "b", "SIZE", "1"),
			bad:       fill(widget, "SEAL", "b", "SIZE", "1e30")},
		{reason: "a kind that allows one name only", gvr: singletons, name: "default", generated: false,
			original:  fill(singleton, "SEAL", "a", "SIZE", "1"),
			immutable: fill(singleton, "SEAL", "b", "SIZE", "1"),
			bad:       fill(singleton, "SEAL", "b", "SIZE", "11")},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			f := setupFor(t, testkit.Config(t))
			tg := f.target(tc.gvr, tc.name)
			if err := f.c.Accepts(t.Context(), tg, doc(t, tc.original)); err != nil {
				t.Errorf("not accepted before it exists: %v", err)
			}
			live := f.create(tg, tc.original)
			_, err := f.c.Apply(t.Context(), tg, live.GetUID(), doc(t, tc.immutable))
			expectError(t, err, nil, ReasonRejected)
			messageContains(t, err)
			if err := f.c.Accepts(t.Context(), tg, doc(t, tc.immutable)); err != nil {
				t.Errorf("a new object could have it, but the probe says %v", err)
			}
			out, err := f.c.DryRunCreate(t.Context(), tg, doc(t, tc.immutable))
			switch {
			case tc.generated && err != nil:
				t.Errorf("under a generated name: %v", err)
			case tc.generated && (out.GetName() == tc.name || !strings.HasPrefix(out.GetName(), tc.name+"-")):
				t.Errorf("the generated name is %s", out.GetName())
			case !tc.generated:
				expectError(t, err, nil, ReasonRejected)
			}

			_, err = f.c.Apply(t.Context(), tg, live.GetUID(), doc(t, tc.bad))
			if reason := Classify(err).Reason; reason != ReasonRejected && reason != ReasonSchemaMismatch {
				t.Errorf("a bad value gave %v", err)
			}
			expectError(t, f.c.Accepts(t.Context(), tg, doc(t, tc.bad)), nil, ReasonRejected)
			_, err = f.c.DryRunCreate(t.Context(), tg, doc(t, tc.bad))
			expectError(t, err, nil, ReasonRejected)

			if got := f.get(tg); got.GetResourceVersion() != live.GetResourceVersion() {
				t.Error("a probe or a refused apply wrote something")
			}
		})
	}
}

func TestDryRunCreateFillsDefaults(t *testing.T) {
	f := setupFor(t, testkit.Config(t))
	long := strings.Repeat("n", 63)
	out, err := f.c.DryRunCreate(t.Context(), f.target(services, long), doc(t, `{apiVersion: v1, kind: Service, spec: {ports: [{port: 80}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := field(t, out, "spec", "type"); got != "ClusterIP" {
		t.Errorf("the type is %v, want the default", got)
	}
	if _, err := f.c.DryRunCreate(t.Context(), f.target(configMaps, strings.Repeat("n", 253)), doc(t, configMap)); err != nil {
		t.Errorf("the longest name of all: %v", err)
	}
	if n := len(testkit.List(t, services, f.ns, "")); n != 0 {
		t.Errorf("%d objects were stored", n)
	}
}

// TestAcceptsOccupied: the limit of every probe: a new object cannot have what the existing one occupies.
func TestAcceptsOccupied(t *testing.T) {
	f := setupFor(t, testkit.Config(t))
	tg := f.target(services, "web")
	yaml := `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: NodePort, ports: [{port: 80}]}}`
	live := f.create(tg, yaml)
	occupied := doc(t, yaml)
	ports, _ := field(t, live, "spec", "ports").([]any)
	occupied["spec"].(map[string]any)["ports"] = []any{map[string]any{"port": int64(80), "nodePort": ports[0].(map[string]any)["nodePort"]}}
	if err := f.c.Accepts(t.Context(), tg, occupied); err != nil {
		expectError(t, err, nil, ReasonRejected)
		messageContains(t, err, "already allocated")
	} else {
		t.Error("accepted: the comment at Accepts is out of date")
	}
	if _, err := f.c.Delete(t.Context(), tg, live.GetUID(), metav1.DeletePropagationBackground); err != nil {
		t.Error(err)
	}
}
