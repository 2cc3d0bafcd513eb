package reported_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// roomDownstreams are a Secret, and then the Namespace that it is in.
const roomDownstreams = `
  - name: secret
    apiVersion: v1
    kind: Secret
    targetNamespaces: {from: Any}
    generated: [{path: .data.password, length: 32}]
    template: |
      metadata: {name: key, namespace: "room-{{ .spec.name }}"}
  - name: room
    apiVersion: v1
    kind: Namespace
    template: |
      metadata: {name: "room-{{ .spec.name }}"}
`

// keptRooms has the Secret kept.
var keptRooms = rooms("generated:", "deletionPolicy: Orphan\n    generated:")

// otherSecret is another Secret, before the Namespace.
const otherSecret = `
  - name: other
    apiVersion: v1
    kind: Secret
    template: |
      metadata: {name: other}
  - name: room`

// rooms changes operatorConfig.
func rooms(oldNew ...string) []string {
	return []string{operatorConfig[strings.Index(operatorConfig, "\n  - name: config"):strings.Index(operatorConfig, "conventions:")],
		strings.NewReplacer(oldNew...).Replace(roomDownstreams), "reference: true", "reference: false"}
}

// collect does the work of the garbage collector and the namespace controller while the operator works.
func (s *scene) collect() {
	for range 200 {
		s.cluster.CollectGarbage()
		<-time.After(100 * time.Millisecond)
	}
}

// find returns an object; nil if there is none.
func (s *scene) find(gvr schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	u, err := s.users.Resource(gvr).Namespace(namespace).Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return u
}

func (s *scene) password(namespace string) string {
	u := s.find(secrets, namespace, "key")
	if u == nil {
		return ""
	}
	text, _, _ := unstructured.NestedString(u.Object, "data", "password")
	return text
}

// keptTests are changes after which something must still exist.
var keptTests = []struct {
	name, reason string
	config       []string // changes of operatorConfig, before the start
	do           func(s *scene)
	password     string // the namespaces that have the Secret with its first password
	room         string // the namespaces that exist
	says         string // a part of what the operator says
}{
	{name: "renamed", reason: "the Secret cannot be created before the new Namespace exists", config: rooms(),
		do: func(s *scene) { s.patch(widgets, "a", `{"spec":{"name":"new"}}`) }, password: "room-new", room: "room-new"},
	{name: "refused", reason: "the Secret cannot be created in the new Namespace", config: rooms(), do: func(s *scene) {
		s.refuse = func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/namespaces/room-new/secrets") }
		s.patch(widgets, "a", `{"spec":{"name":"new"}}`)
	}, password: "room-old", room: "room-old room-new"},
	{name: "orphan", reason: "it is in the Namespace of an upstream that is deleted", config: keptRooms,
		do: func(s *scene) { s.delete(widgets, "a") }, password: "room-old", room: "room-old",
		says: "released kind=Namespace target=room-old why=the upstream is being deleted; it is kept, since Secret room-old/key, which " +
			"deletionPolicy Orphan keeps, is in it"},
	{name: "orphan that cannot be released", reason: "nor is the Namespace deleted", config: keptRooms,
		do: func(s *scene) {
			s.refuse = func(r *http.Request) bool {
				return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/namespaces/room-old")
			}
			s.delete(widgets, "a")
		}, password: "room-old", room: "room-old"},
	{name: "renamed orphan", reason: "it is in the Namespace that is replaced", config: keptRooms,
		do: func(s *scene) { s.patch(widgets, "a", `{"spec":{"name":"new"}}`) }, password: "room-old room-new", room: "room-old room-new",
		says: "released kind=Namespace target=room-old why=room-new has replaced it; it is kept, since Secret room-old/key"},
	{name: "removed from the config", reason: "then the upstream is deleted, and another downstream has the kind",
		config: rooms(`"room-{{ .spec.name }}"}
  - name: room`, "other}"+otherSecret, "generated:", "deletionPolicy: Orphan\n    generated:"),
		do: func(s *scene) {
			secret, _, _ := strings.Cut(roomDownstreams, "\n  - name: room")
			s.config(operatorConfig, rooms(secret, "", "\n  - name: room", otherSecret)...)
			s.reload()
			s.delete(widgets, "a")
		}, password: "other", says: "no Widget"},
}

// What must stay is not deleted with its Namespace.
func TestKept(t *testing.T) {
	for _, test := range keptTests {
		t.Run(test.name, func(t *testing.T) {
			play(t, func(s *scene) {
				s.config(operatorConfig, test.config...)
				s.put(strings.Replace(widget, "spec: {", "spec: {name: old, ", 1))
				s.start()
				first := s.password("room-old") + s.password("other")
				if first == "" {
					t.Fatalf("%s: %q", test.reason, s.said())
				}
				s.said()
				test.do(s)
				s.collect()
				var have []string
				for _, name := range []string{"room-old", "room-new", "other"} {
					if s.password(name) == first {
						have = append(have, name)
					}
				}
				if got := strings.Join(have, " "); got != test.password {
					t.Errorf("%s: the first password is in %q, not in %q", test.reason, got, test.password)
				}
				have = nil
				for _, name := range []string{"room-old", "room-new"} {
					if s.find(namespaces, "", name) != nil {
						have = append(have, name)
					}
				}
				if got := strings.Join(have, " "); got != test.room {
					t.Errorf("%s: there are the namespaces %q, not %q", test.reason, got, test.room)
				}
				if said := strings.Join(s.said(), "\n"); !strings.Contains(said, test.says) {
					t.Errorf("%s: it does not say %q, but\n%s", test.reason, test.says, said)
				}
			})
		})
	}
}
