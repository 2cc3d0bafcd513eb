package kept

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corollary-dev/corollary/pkg/drift"
)

// written are objects as API servers write them: those of a kind of Kubernetes, and custom resources, whose names are
// sorted.
var written = map[string]string{
	"Kubernetes": `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u",` +
		`"resourceVersion":"7","managedFields":[{"manager":"m"}]},"data":{"uid":"other","k":"v"}}`,
	"custom resource": `{"apiVersion":"v1","data":{"uid":"other","version":"9"},"kind":"ConfigMap","metadata":` +
		`{"annotations":{"uid":"other"},"managedFields":[{"manager":"m"}],"name":"a","namespace":"n",` +
		`"ownerReferences":[{"uid":"other"}],"resourceVersion":"7","uid":"u"},"spec":{"metadata":{"uid":"other"}}}`,
}

// TestReturned: a watch shows what a write returned, once, if it is that object in that state and version of its kind.
func TestReturned(t *testing.T) {
	for name, text := range written {
		for reason, c := range map[string]struct {
			change func(*unstructured.Unstructured)
			after  time.Duration
			same   bool
		}{
			"the state that was returned": {func(*unstructured.Unstructured) {}, 0, true},
			"long after":                  {func(*unstructured.Unstructured) {}, returnedFor, false},
			"a later state":               {func(u *unstructured.Unstructured) { u.SetResourceVersion("8") }, 0, false},
			"another object":              {func(u *unstructured.Unstructured) { u.SetUID("other") }, 0, false},
			"another kind":                {func(u *unstructured.Unstructured) { u.SetKind("Secret") }, 0, false},
			"another version of the kind": {func(u *unstructured.Unstructured) { u.SetAPIVersion("v2") }, 0, false},
		} {
			t.Run(name+"/"+reason, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					codec := LiveCodec{Returned: &Returned{}}
					u, _ := decoded(t, codec, text).(*unstructured.Unstructured)
					live := (&drift.View{}).Live(u)
					codec.Returned.Add(live)
					c.change(u)
					<-time.After(c.after)
					for n, want := range []bool{c.same, false} {
						shown := decoded(t, codec, textOf(t, u))
						if got := shown == any(live); got != want {
							t.Errorf("event %d shows what was returned: %v, want %v", n, got, want)
						}
					}
				})
			})
		}
	}
}

func decoded(t *testing.T, codec runtime.Decoder, text string) runtime.Object {
	t.Helper()
	obj, _, err := codec.Decode([]byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

func textOf(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	text, err := u.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
