package apply

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestWithFieldsTakenOver merges entries without a server.
func TestWithFieldsTakenOver(t *testing.T) {
	for _, test := range []struct{ reason, have, want string }{
		{"nothing of theirs", `[{manager: other, operation: Update, fieldsType: FieldsV1, fieldsV1: {'f:a': {}}}]`, ``},
		{"theirs becomes ours", `[{manager: helm, operation: Update, apiVersion: v1, time: t1, fieldsType: FieldsV1, fieldsV1: {'f:a': {}}}]`,
			`[{manager: operator, operation: Apply, apiVersion: v1, time: t1, fieldsType: FieldsV1, fieldsV1: {'f:a': {}}}]`},
		{"into ours, with the later time", `[{manager: operator, operation: Apply, apiVersion: v1, time: t1, fieldsType: FieldsV1, fieldsV1: {'f:a': {'f:x': {}}}},
		   {manager: helm, operation: Apply, apiVersion: v1, time: t2, fieldsType: FieldsV1, fieldsV1: {'f:a': {'f:y': {}}, 'f:b': {}}}]`,
			`[{manager: operator, operation: Apply, apiVersion: v1, time: t2, fieldsType: FieldsV1, fieldsV1: {'f:a': {'f:x': {}, 'f:y': {}}, 'f:b': {}}}]`},
		{"a place that one owns whole and the other below is owned both ways", `[{manager: operator, operation: Apply, fieldsType: FieldsV1, fieldsV1: {'f:a': {}, 'f:b': {'f:x': {}}, 'f:c': {'.': {}, 'f:x': {}}}},
		   {manager: helm, operation: Update, fieldsType: FieldsV1, fieldsV1: {'f:a': {'f:y': {}}, 'f:b': {}, 'f:c': {'.': {}, 'f:y': {}}}}]`,
			`[{manager: operator, operation: Apply, fieldsType: FieldsV1, fieldsV1: {'f:a': {'.': {}, 'f:y': {}}, 'f:b': {'.': {}, 'f:x': {}}, 'f:c': {'.': {}, 'f:x': {}, 'f:y': {}}}}]`},
		{"the entry of the object's version gives its own", `[{manager: helm, operation: Update, apiVersion: v1beta1, fieldsType: FieldsV1, fieldsV1: {'f:a': {}}},
		   {manager: kubectl, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {'f:b': {}}}]`,
			`[{manager: operator, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {'f:a': {}, 'f:b': {}}}]`},
		{"subresources, others, our own updates and what is of no known format stay", `[{manager: helm, operation: Update, subresource: status, fieldsType: FieldsV1, fieldsV1: {'f:s': {}}},
		   {manager: operator, operation: Update, fieldsType: FieldsV1, fieldsV1: {'f:o': {}}},
		   {manager: helm, operation: Update, fieldsType: FieldsV2},
		   {manager: helm, operation: Update, fieldsType: FieldsV1, fieldsV1: {'f:a': {}}}, {manager: other, operation: Update, fieldsType: FieldsV1, fieldsV1: {'f:t': {}}}]`,
			`[{manager: operator, operation: Apply, fieldsType: FieldsV1, fieldsV1: {'f:a': {}}}, {manager: helm, operation: Update, subresource: status, fieldsType: FieldsV1, fieldsV1: {'f:s': {}}},
		   {manager: operator, operation: Update, fieldsType: FieldsV1, fieldsV1: {'f:o': {}}},
		   {manager: helm, operation: Update, fieldsType: FieldsV2},
		   {manager: other, operation: Update, fieldsType: FieldsV1, fieldsV1: {'f:t': {}}}]`},
	} {
		t.Run(test.reason, func(t *testing.T) {
			object := func(entries string) *unstructured.Unstructured {
				var u unstructured.Unstructured
				if err := yaml.Unmarshal([]byte(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, managedFields: `+entries+`}}`),
					&u.Object); err != nil {
					t.Fatal(err)
				}
				return &u
			}
			live := object(test.have)
			got := WithFieldsTakenOver(live, "operator", []string{"helm", "kubectl", "operator"})
			must.Same(t, object(test.have).Object, live.Object, "the object was changed")
			if test.want == "" {
				if got != live {
					t.Error("nothing was taken over, and yet it is another object")
				}
				return
			}
			must.Same(t, object(test.want).Object, got.Object)
		})
	}
}

// theirDeployment has what ours has, and a label, an annotation, an environment variable, an argument and a container.
const theirDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: a
  labels: {app: a, theirs: "1"}
  annotations: {theirs: "1", kubectl.kubernetes.io/last-applied-configuration: "{}"}
spec:
  replicas: 3
  paused: true
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}, annotations: {theirs: "1"}}
    spec:
      terminationGracePeriodSeconds: 7
      containers:
        - {name: app, image: img, args: [theirs], env: [{name: MINE, value: "0"}, {name: THEIRS, value: "1"}]}
        - {name: sidecar, image: theirs}
`

const ourDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, labels: {app: a}}
spec:
  replicas: 2
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      containers:
        - {name: app, image: img, env: [{name: MINE, value: "1"}]}
`

func posted(f *fixture, manager string) *unstructured.Unstructured {
	f.Helper()
	out := must.Get(testkit.Dynamic(f.T).Resource(deployments).Namespace(f.ns).
		Create(f.Context(), testkit.Parse(f.T, theirDeployment), metav1.CreateOptions{FieldManager: manager})).In(f)
	return out
}

func applied(f *fixture, manager string) *unstructured.Unstructured {
	f.Helper()
	out := must.Get(testkit.Dynamic(f.T).Resource(deployments).Namespace(f.ns).
		Apply(f.Context(), "a", testkit.Parse(f.T, theirDeployment), metav1.ApplyOptions{FieldManager: manager, Force: true})).In(f)
	return out
}

func checkTakenOver(f *fixture, manager string) {
	f.Helper()
	tg := f.target(deployments, "a")
	before := f.get(tg)
	status := entry(before, manager, metav1.ManagedFieldsOperationUpdate, "status")
	taken := must.Get(f.c.TakeOver(f.Context(), tg, before, []string{manager})).In(f)
	if got, want := managers(taken), []string{manager + " Update status", ours + " Apply ", "other Update "}; !slices.Equal(got,
		slices.Sorted(slices.Values(want))) {
		f.Fatalf("managers are %v, want %v", got, want)
	}
	if status == "" || entry(taken, manager, metav1.ManagedFieldsOperationUpdate, "status") != status {
		f.Errorf("the entry for the status was %s and is %s", status, entry(taken, manager, metav1.ManagedFieldsOperationUpdate, "status"))
	}
	if before.GetGeneration() != taken.GetGeneration() {
		f.Error("taking over changed a value")
	}
	out := f.apply(tg, before.GetUID(), ourDeployment)
	checkOurs(f, out)
	out = f.apply(tg, before.GetUID(), strings.Replace(ourDeployment, `, env: [{name: MINE, value: "1"}]`, "", 1))
	if c := containers(out); len(c) != 1 || c[0]["env"] != nil {
		f.Errorf("a field that was left out later stays: %v", c)
	}
	f.requests = nil
	if again, err := f.c.TakeOver(f.Context(), tg, out, []string{manager}); err != nil || again != out || len(f.requests) != 0 {
		f.Errorf("taking over again: %v, requests %v", err, f.requests)
	}
}

func containers(u *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	var out []map[string]any
	for _, c := range list {
		out = append(out, c.(map[string]any))
	}
	return out
}

func checkOurs(f *fixture, u *unstructured.Unstructured) {
	f.Helper()
	for _, gone := range [][]string{
		{"metadata", "labels", "theirs"},
		{"metadata", "annotations", "theirs"},
		{"metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"},
		{"spec", "paused"}, {"spec", "minReadySeconds"},
		{"spec", "template", "metadata", "annotations"},
	} {
		if v := field(f, u, gone...); v != nil {
			f.Errorf("%v is %v, want it gone", gone, v)
		}
	}
	for _, want := range []struct {
		value any
		path  []string
	}{
		{int64(2), []string{"spec", "replicas"}},
		{int64(30), []string{"spec", "template", "spec", "terminationGracePeriodSeconds"}}, // reset to the default
		{"1", []string{"metadata", "labels", "other"}},
		{int64(4), []string{"spec", "revisionHistoryLimit"}},
		{int64(3), []string{"status", "replicas"}},
	} {
		if v := field(f, u, want.path...); v != want.value {
			f.Errorf("%v is %v, want %v", want.path, v, want.value)
		}
	}
	c := containers(u)
	if len(c) != 1 || c[0]["args"] != nil || len(c[0]["env"].([]any)) != 1 {
		f.Errorf("containers are %v", c)
	}
}

// TestTakeOverFromOperator: an operator in Go sets a controller reference with blockOwnerDeletion.
func TestTakeOverFromOperator(t *testing.T) {
	f := setup(t)
	tg := f.target(configMaps, "a")
	owner := testkit.Apply(t, f.ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: owner}}`)
	reference := `{apiVersion: v1, kind: ConfigMap, name: owner, controller: true, uid: ` + string(owner.GetUID())
	_, err := testkit.Dynamic(t).Resource(configMaps).Namespace(f.ns).Create(t.Context(), testkit.Parse(t, `{apiVersion: v1, kind: ConfigMap,
	  metadata: {name: a, ownerReferences: [`+reference+`, blockOwnerDeletion: true}]}, data: {mine: "0", theirs: "1"}}`), metav1.CreateOptions{FieldManager: "manager"})
	if err != nil {
		t.Fatal(err)
	}
	live := must.Get(f.c.TakeOver(t.Context(), tg, f.get(tg), []string{"manager"})).In(t)
	out := f.apply(tg, live.GetUID(),
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, ownerReferences: [`+reference+`}]}, data: {mine: "1"}}`)
	refs := out.GetOwnerReferences()
	if len(refs) != 1 || refs[0].BlockOwnerDeletion != nil || refs[0].Controller == nil || field(t, out, "data", "theirs") != nil {
		t.Errorf("references are %v, data is %v", refs, out.Object["data"])
	}
}

// TestTakeOverRace: a concurrent write is not overwritten, and another object of that name is left alone.
func TestTakeOverRace(t *testing.T) {
	f := setup(t)
	posted(f, "helm")
	tg := f.target(deployments, "a")
	stale := f.get(tg)
	testkit.Patch(t, deployments, f.ns, "a", "helm", `{"metadata": {"labels": {"late": "1"}}}`)
	_, err := f.c.TakeOver(t.Context(), tg, stale, []string{"helm"})
	expectError(t, err, ErrConflict, ReasonChanged)
	if got := managers(f.get(tg)); !slices.Equal(got, []string{"helm Update "}) {
		t.Errorf("managers are %v after a conflict", got)
	}
	taken, err := f.c.TakeOver(t.Context(), tg, f.get(tg), []string{"helm"})
	if err != nil || !strings.Contains(entry(taken, ours, metav1.ManagedFieldsOperationApply, ""), "f:late") {
		t.Errorf("the second attempt: %v", err)
	}
	f.replace(tg, theirDeployment)
	_, err = f.c.TakeOver(t.Context(), tg, stale, []string{"helm"})
	expectError(t, err, ErrConflict, ReasonChanged)
	testkit.Delete(t, deployments, f.ns, "a")
	_, err = f.c.TakeOver(t.Context(), tg, stale, []string{"helm"})
	expectError(t, err, ErrGone, ReasonNotFound)
}

// TestWithdrawStatus: fields that only the previous manager had in the status are removed with its entry; the others
// stay ours.
func TestWithdrawStatus(t *testing.T) {
	f := setup(t)
	tg := f.target(widgets, "w")
	up := testkit.Apply(t, f.ns, `{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: w}, spec: {text: blue}}`)
	before := New(testkit.Dynamic(t), "before")
	write := func(c *Client, status string) *unstructured.Unstructured {
		t.Helper()
		out := must.Get(c.ApplyStatus(t.Context(), tg, "tools.example.com/v1", "Widget", true, up.GetUID(), doc(t, status))).In(t)
		return out
	}
	ready := `conditions: [{type: Ready, status: "True"}]`
	write(before, `{phase: Stalled, `+ready+`}`)
	out := write(f.c, `{`+ready+`}`)
	if field(t, out, "status", "phase") == nil {
		t.Fatal("what the other manager wrote should have stayed")
	}
	out = must.Get(f.c.WithdrawStatus(t.Context(), tg, out, true, "before")).In(t)
	if phase := field(t, out, "status", "phase"); phase != nil {
		t.Errorf("phase is %v, want it gone", phase)
	}
	if got := field(t, out, "status", "conditions"); len(got.([]any)) != 1 {
		t.Errorf("conditions are %v", got)
	}
	f.requests = nil
	if again, err := f.c.WithdrawStatus(t.Context(), tg, out, true, "before"); err != nil || again != out || len(f.requests) != 0 {
		t.Errorf("withdrawing again: %v, requests %v", err, f.requests)
	}
	if got := managers(out); slices.Contains(got, "before Apply status") || field(t, out, "spec", "text") != "blue" {
		t.Errorf("managers are %v, spec is %v", got, out.Object["spec"])
	}
}

// TestUnmark removes marks, whoever owns them, and nothing else.
func TestUnmark(t *testing.T) {
	f := setup(t)
	tg := f.target(configMaps, "a")
	owner := testkit.Apply(t, f.ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: owner}}`)
	made := f.create(tg, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {old/hash: h, other: x}, annotations: {old/owner: o, other: x},
	  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: `+string(owner.GetUID())+`}]}, data: {mine: "1"}}`)
	out := must.Get(f.c.Unmark(t.Context(), tg, made, Marks{OwnerUID: owner.GetUID(), Labels: []string{"old/hash", "absent"},
		Annotations: []string{"old/owner"}})).In(t)
	if len(out.GetAnnotations()) != 1 || len(out.GetLabels()) != 1 || len(out.GetOwnerReferences()) != 0 ||
		field(t, out, "data", "mine") != "1" {
		t.Errorf("the object is %v", out.Object)
	}
	f.requests = nil
	again, err := f.c.Unmark(t.Context(), tg, out, Marks{Labels: []string{"old/hash"}})
	if err != nil || again != out || len(f.requests) != 0 {
		t.Errorf("a request for nothing: %v, %v", err, f.requests)
	}
}

func TestSwapFinalizer(t *testing.T) {
	f := setup(t)
	tg := f.target(configMaps, "a")
	made := f.create(tg,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: [example.com/other, example.com/old, example.com/last]}}`)
	out, err := f.c.SwapFinalizer(t.Context(), tg, made, "example.com/old", "example.com/new")
	if err != nil || !slices.Equal(out.GetFinalizers(), []string{"example.com/other", "example.com/new", "example.com/last"}) {
		t.Fatalf("finalizers are %v, %v", out.GetFinalizers(), err)
	}
	_, err = f.c.SwapFinalizer(t.Context(), tg, made, "example.com/old", "example.com/new")
	expectError(t, err, ErrConflict, ReasonChanged)
	if out, err = f.c.AddFinalizer(t.Context(), tg, out, "example.com/old"); err != nil {
		t.Fatal(err)
	}
	if out, err = f.c.SwapFinalizer(t.Context(), tg, out, "example.com/old", "example.com/new"); err != nil || len(out.GetFinalizers()) != 3 {
		t.Errorf("beside the new one: %v, %v", out.GetFinalizers(), err)
	}
	out, err = f.c.RemoveFinalizer(t.Context(), tg, out, "example.com/new", "example.com/absent", "example.com/other")
	if err != nil || !slices.Equal(out.GetFinalizers(), []string{"example.com/last"}) {
		t.Errorf("several at once: %v, %v", out.GetFinalizers(), err)
	}
	testkit.Patch(t, configMaps, f.ns, "a", "test", `{"metadata": {"finalizers": null}}`)
}
