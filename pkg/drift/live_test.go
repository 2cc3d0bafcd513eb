package drift_test

import (
	"reflect"
	"strings"
	"testing"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

const deploymentText = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: apps
  uid: u-1
  resourceVersion: "42"
  generation: 7
  labels: {hash: by-label}
  annotations: {tools.example.com/spec-hash: v1-abc, tools.example.com/owner: mark}
  ownerReferences:
    - {apiVersion: tools.example.com/v1, kind: Appoperator, name: web, uid: u-0, controller: true}
    - {apiVersion: v1, kind: ConfigMap, name: other, uid: u-9}
spec: {replicas: 1}
status: {observedGeneration: 6}
`

func TestLive(t *testing.T) {
	v := &drift.View{Manager: manager, Hash: drift.Key{Annotation: "tools.example.com/spec-hash"}, OwnerAnnotation: "tools.example.com/owner"}
	got := v.Live(object(t, deploymentText))
	want := &drift.Live{
		Identity: drift.Identity{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "apps", Name: "web", UID: "u-1", ResourceVersion: "42",
			Generation: 7},
		Hash: "v1-abc", Marks: drift.Marks{OwnerMark: "mark"},
		Owners: []drift.OwnerRef{{Kind: "Appoperator", Name: "web", UID: "u-0", Controller: true},
			{Kind: "ConfigMap", Name: "other", UID: "u-9"}},
		Status: kstatus.InProgressStatus, StatusMessage: "Deployment generation is 7, but latest observed generation is 6",
	}
	must.Same(t, want, got)
	v.Hash = drift.Key{Label: "hash"}
	if got = v.Live(object(t, deploymentText)); got.Hash != "by-label" {
		t.Errorf("hash %q, want the label's", got.Hash)
	}
	v.Hash = drift.Key{}
	if got = v.Live(object(t, deploymentText)); got.Hash != "" {
		t.Errorf("hash %q without a key", got.Hash)
	}
}

// TestLiveOfAnotherOperator: an object with the owner annotation of another operator has an owner, unless it is known
// to be ours.
func TestLiveOfAnotherOperator(t *testing.T) {
	const text = `{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: b, annotations: {other.example.com/by: default/s1/0b7f2b0e-3f9c-4a53-9f0a-2f8f6f0d1c11,
  example.com/image: registry/a/b, example.com/hash: "HASH"}}}`
	v := &drift.View{Manager: manager, Hash: drift.Key{Annotation: "example.com/hash"}}
	for hash, want := range map[string][]drift.OwnerRef{"v1-abc": nil,
		"": {{Name: "default/s1 (annotation other.example.com/by)", UID: "0b7f2b0e-3f9c-4a53-9f0a-2f8f6f0d1c11", Controller: true}}} {
		got := v.Live(object(t, strings.Replace(text, "HASH", hash, 1)))
		must.Same(t, want, got.Owners, "with hash", hash)
	}
}

// TestLiveStatus: kstatus reads the whole object; an invalid object has an unknown status, not an error.
func TestLiveStatus(t *testing.T) {
	golden.Table(t, "testdata/status.txt", func(t *testing.T, input string) string {
		l := live(t, &drift.View{Manager: manager}, object(t, input))
		message, _, isError := strings.Cut(l.StatusMessage, "computing the status: ")
		if isError { // in the words of the library
			message = "computing the status:"
		}
		return strings.TrimSpace(string(l.Status) + " " + message)
	})
}

// TestLiveStatusOfKinds: the status of an object without one is that of the library, for all kinds for which it has a
// rule.
func TestLiveStatusOfKinds(t *testing.T) {
	for kind, apiVersion := range map[string]string{
		"Service": "v1", "Pod": "v1", "Secret": "v1", "PersistentVolumeClaim": "v1", "ConfigMap": "v1", "StatefulSet": "apps/v1",
		"DaemonSet": "apps/v1", "Deployment": "apps/v1", "ReplicaSet": "apps/v1", "PodDisruptionBudget": "policy/v1", "CronJob": "batch/v1",
		"Job": "batch/v1", "CustomResourceDefinition": "apiextensions.k8s.io/v1", "X": "x.example.com/v1",
	} {
		for _, rest := range []string{"", ", spec: {replicas: 2, type: LoadBalancer}", ", status: {}", ", status: {observedGeneration: 1}"} {
			text := "{apiVersion: " + apiVersion + ", kind: " + kind + ", metadata: {name: a, generation: 2}" + rest + "}"
			l := (&drift.View{Manager: manager}).Live(object(t, text))
			want := must.Get(kstatus.Compute(object(t, text))).In(t)
			if want.Status == kstatus.CurrentStatus {
				want.Message = "" // it has no further information
			}
			if l.Status != want.Status || l.StatusMessage != want.Message {
				t.Errorf("%s: got %s %q, the library says %s %q", text, l.Status, l.StatusMessage, want.Status, want.Message)
			}
		}
	}
}

// TestEqualsExceptVersion: no field but the version may differ.
func TestEqualsExceptVersion(t *testing.T) {
	before := (&drift.View{Manager: manager, KeepWhole: true}).Live(object(t, deploymentText))
	if (*drift.Live)(nil).EqualsExceptVersion(before) || before.EqualsExceptVersion(nil) {
		t.Error("an object equals nil")
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[drift.Live]()) {
		after := *before
		switch v := reflect.ValueOf(&after).Elem().FieldByIndex(field.Index); v.Kind() {
		case reflect.String:
			v.SetString(v.String() + "x")
		case reflect.Uint32:
			v.SetUint(v.Uint() + 1)
		case reflect.Int64:
			v.SetInt(v.Int() + 1)
		case reflect.Bool:
			v.SetBool(!v.Bool())
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), v.Len()+1, v.Len()+1))
		case reflect.Array:
			v.Index(0).SetUint(v.Index(0).Uint() + 1)
		case reflect.Map:
			v.Set(reflect.ValueOf(map[string]any{"x": "y"}))
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
		case reflect.Struct:
			continue // NoMetadata, which has nothing
		default:
			t.Fatalf("%s is a %s: say how to change it", field.Name, v.Kind())
		}
		if want := field.Name == "ResourceVersion"; before.EqualsExceptVersion(&after) != want {
			t.Errorf("with another %s it is equal: %v, want %v", field.Name, !want, want)
		}
	}
}

func TestTransform(t *testing.T) {
	v := &drift.View{Manager: manager, Keep: [][]string{{"spec"}}}
	transform := v.Transform()
	u := object(t, deploymentText)
	before := u.DeepCopy()
	once := must.Get(transform(u)).In(t)
	live, ok := once.(*drift.Live)
	if !ok {
		t.Fatalf("got a %T", once)
	}
	must.Same(t, before, u, "the object was changed")
	if twice, err := transform(live); err != nil || twice != any(live) {
		t.Errorf("a second transform gives %v, %v", twice, err)
	}
	type tombstone struct{ Obj any }
	for _, other := range []any{tombstone{u}, nil, "text", (*unstructured.Unstructured)(nil)} {
		if got, err := transform(other); err != nil || got != other {
			t.Errorf("%v becomes %v, %v", other, got, err)
		}
	}
	u.Object["spec"].(map[string]any)["replicas"] = int64(99)
	if live.Kept["spec"].(map[string]any)["replicas"] != int64(1) {
		t.Error("what is kept lies in the object's memory")
	}
}

// TestLiveIsAnObject: caches and queues read the identity of an object through these interfaces.
func TestLiveIsAnObject(t *testing.T) {
	v := &drift.View{Manager: manager, Keep: [][]string{{"spec"}}, Initial: []fieldpath.Path{fieldpath.MustParse(".spec")}}
	l := v.Live(object(t, deploymentText))
	m := must.Get(meta.Accessor(l)).In(t)
	if m.GetName() != "web" || m.GetNamespace() != "apps" || m.GetUID() != "u-1" || m.GetResourceVersion() != "42" || m.GetGeneration() != 7 ||
		m.GetDeletionTimestamp() != nil {
		t.Errorf("another identity: %+v", m)
	}
	refs := m.GetOwnerReferences()
	if len(refs) != 2 || refs[0].UID != "u-0" || refs[0].Controller == nil || !*refs[0].Controller || refs[1].Controller != nil {
		t.Errorf("other owners: %+v", refs)
	}
	if got, want := l.GetObjectKind().GroupVersionKind(),
		(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}); got != want {
		t.Errorf("kind %s, want %s", got, want)
	}
	twin := l.DeepCopyObject().(*drift.Live)
	must.Same(t, l, twin, "the copy")
	twin.Kept["spec"].(map[string]any)["replicas"] = int64(5)
	twin.Owners[0].Name, twin.Initial[0].Value.(map[string]any)["replicas"] = "x", int64(5)
	if l.Kept["spec"].(map[string]any)["replicas"] != int64(1) || l.Owners[0].Name != "web" ||
		l.Initial[0].Value.(map[string]any)["replicas"] != int64(1) {
		t.Error("the copy shares memory")
	}
}

func TestViewID(t *testing.T) {
	path := func(s string) []fieldpath.Path { return []fieldpath.Path{fieldpath.MustParse(s)} }
	views := map[string]drift.View{
		"nothing":              {},
		"manager":              {Manager: "a"},
		"hash annotation":      {Hash: drift.Key{Annotation: "a"}},
		"hash label":           {Hash: drift.Key{Label: "a"}},
		"owner annotation":     {OwnerAnnotation: "a"},
		"initial":              {Initial: path(".a")},
		"exclusive":            {Exclusive: path(".a")},
		"keep":                 {Keep: [][]string{{"a"}}},
		"keep a chain":         {Keep: [][]string{{"a", "b"}}},
		"keep a key with dots": {Keep: [][]string{{"a.b"}}},
		"keep all":             {KeepWhole: true},
		"adopt":                {Adopt: []string{"a"}},
		"adopt another":        {Adopt: []string{"b"}},
		"previous manager":     {Previous: drift.Previous{Manager: "a"}},
		"previous annotation":  {Previous: drift.Previous{Hash: drift.Key{Annotation: "a"}}},
		"previous label":       {Previous: drift.Previous{Hash: drift.Key{Label: "a"}}},
		"previous owner":       {Previous: drift.Previous{OwnerAnnotation: "a"}},
	}
	seen := map[string]string{}
	for name, v := range views {
		must.Same(t, "", seen[v.ID()], name, "and", "have one ID")
		seen[v.ID()] = name
	}
	a, b := drift.View{Keep: [][]string{{"a"}, {"b"}}}, drift.View{Keep: [][]string{{"b"}, {"a"}}}
	if a.ID() != b.ID() {
		t.Error("the order in which fields are kept counts")
	}
}

func TestWithout(t *testing.T) {
	for reason, test := range map[string]struct{ in, path, want string }{
		"a field":                      {"{a: {b: 1, c: 2}}", ".a.b", "{a: {c: 2}}"},
		"parents that become empty go": {"{a: {b: {c: 1}}, d: 1}", ".a.b.c", "{d: 1}"},
		"parents that were empty stay": {"{a: {b: {}}}", ".a.b.c", "{a: {b: {}}}"},
		"nothing is left":              {"{a: {b: 1}}", ".a", "{}"},
		"a list's item":                {"{a: [{name: x}, {name: z}]}", ".a[name=x]", "{a: [{name: z}]}"},
		"a list's last item":           {"{a: [{name: x}], b: 1}", ".a[0]", "{b: 1}"},
		"a field in an item":           {"{a: [{name: x, v: 1}]}", ".a[name=x].v", "{a: [{name: x}]}"},
		"an item that becomes empty":   {"{a: [{v: 1}, {v: 2}]}", ".a[0].v", "{a: [{v: 2}]}"},
		"what is not there":            {"{a: 1}", ".a.b", "{a: 1}"},
		"a null":                       {"{a: null, b: 1}", ".a", "{b: 1}"},
	} {
		t.Run(reason, func(t *testing.T) {
			in := parse(t, test.in)
			got := fieldpath.Without(in, []fieldpath.Path{fieldpath.MustParse(test.path)})
			must.Same(t, parse(t, test.want), got)
			must.Same(t, parse(t, test.in), in, "the input was changed")
		})
	}
}
