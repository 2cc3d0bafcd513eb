package kept

import (
	"encoding/json"
	"fmt"
	goruntime "runtime"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/corollary-dev/corollary/pkg/drift"
)

// settings are objects as API servers write them: those of a kind of Kubernetes, and of a custom resource, whose names are sorted.
var settings = map[string]string{
	"Kubernetes": `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7",` +
		`"managedFields":[{"manager":"m"}]},"data":{"uid":"other","k":"v"}}`,
	"custom resource": `{"apiVersion":"v1","data":{"uid":"other","resourceVersion":"9"},"kind":"ConfigMap","metadata":{"annotations":` +
		`{"uid":"other"},"managedFields":[{"manager":"m"}],"name":"a","namespace":"n","ownerReferences":[{"uid":"other"}],` +
		`"resourceVersion":"7","uid":"u"},"spec":{"metadata":{"uid":"other"}}}`,
}

func TestDecodeVersion(t *testing.T) {
	for name, text := range settings {
		v, err := decodeVersion([]byte(text))
		if want := (version{"v1", "ConfigMap", "u", "7"}); err != nil || v != want {
			t.Errorf("%s: %+v, %v; want %+v", name, v, err, want)
		}
	}
}

// TestReturned: a watch shows the object that a write returned, if it is that object in that state and version of its kind.
func TestReturned(t *testing.T) {
	for name, text := range settings {
		for reason, c := range map[string]struct {
			change func(*unstructured.Unstructured)
			same   bool
		}{
			"the state that was returned": {func(*unstructured.Unstructured) {}, true},
			"a later state":               {func(u *unstructured.Unstructured) { u.SetResourceVersion("8") }, false},
			"another object":              {func(u *unstructured.Unstructured) { u.SetUID("other") }, false},
			"another kind":                {func(u *unstructured.Unstructured) { u.SetKind("Secret") }, false},
			"another version of the kind": {func(u *unstructured.Unstructured) { u.SetAPIVersion("v2") }, false},
		} {
			t.Run(name+"/"+reason, func(t *testing.T) {
				codec := ReturnedCodec{Returned: &Returned{}}
				written := decodeWith(t, codec, text)
				live := &drift.Live{Name: "live"}
				codec.Returned.Add(written, "view", live)
				seen := written.DeepCopy()
				c.change(seen)
				shown := decodeWith(t, codec, textOf(t, seen))
				if (shown == written) != c.same {
					t.Errorf("a watch shows the object that was returned: %v, want %v", shown == written, c.same)
				}
				if got, want := textOf(t, shown), textOf(t, seen); got != want {
					t.Errorf("a watch shows %s, want %s", got, want)
				}
				for view, want := range map[string]bool{"view": c.same, "other view": false} {
					made, err := codec.Returned.Transform(view, again)(shown)
					if err != nil || (made == any(live)) != want {
						t.Errorf("%s: made %v, %v", view, made, err)
					}
				}
				goruntime.KeepAlive(written)
				goruntime.KeepAlive(live)
			})
		}
	}
}

// again is a transform that makes an object of its own.
var again cache.TransformFunc = func(any) (any, error) { return &drift.Live{Name: "again"}, nil }

// TestReturnedIsNotKept: what nobody else holds is not kept in memory, and objects beyond the last ones are forgotten.
func TestReturnedIsNotKept(t *testing.T) {
	r := &Returned{}
	held := decodeWith(t, ObjectCodec{}, settings["Kubernetes"])
	for i := range len(r.last) {
		one := held.DeepCopy()
		one.SetUID(types.UID(fmt.Sprint(i)))
		r.Add(one, "view", &drift.Live{})
	}
	goruntime.GC()
	if !r.isEmpty() {
		t.Error("objects are kept in memory")
	}
	r.Add(held, "view", &drift.Live{})
	if r.isEmpty() || r.object(versionOf(held)) != held {
		t.Error("an object that is in memory was not found")
	}
	for range len(r.last) {
		r.Add(held.DeepCopy(), "view", &drift.Live{})
	}
	if r.object(versionOf(held)) == held {
		t.Error("an old response is still there")
	}
	goruntime.KeepAlive(held)
}

func decodeWith(t *testing.T, codec runtime.Decoder, text string) *unstructured.Unstructured {
	t.Helper()
	obj, _, err := codec.Decode([]byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		t.Fatalf("decoded %T", obj)
	}
	return u
}

func textOf(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	text, err := json.Marshal(u.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
