//go:build controlplane

package migrate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr/testr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/migrate"
)

var things = schema.GroupVersionResource{Group: "full.example.com", Version: "v1", Resource: "things"}

// smallServer is an API server with an etcd of a few megabytes.
type smallServer struct {
	*testing.T
	plane  *controlplane.ControlPlane
	client dynamic.Interface
}

func newSmallServer(t *testing.T) *smallServer {
	t.Helper()
	k := &kind{t: t, group: things.Group}
	plane, err := controlplane.Start(t.Context(), controlplane.Options{EtcdQuota: 8 << 20, CRDs: []string{k.crd("v1beta1!", "v1")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	client := must.Get(dynamic.NewForConfig(plane.Config())).In(t)
	return &smallServer{t, plane, client}
}

func (s *smallServer) create(resource schema.GroupVersionResource, kind, name string, more map[string]any) error {
	u := &unstructured.Unstructured{Object: more}
	u.SetAPIVersion(resource.GroupVersion().String())
	u.SetKind(kind)
	u.SetName(name)
	_, err := s.client.Resource(resource).Namespace("default").Create(s.Context(), u, metav1.CreateOptions{})
	return err
}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// fill makes ConfigMaps until etcd takes no more.
func (s *smallServer) fill() {
	s.Helper()
	var err error
	for i := 0; err == nil; i++ {
		if i > 100 {
			s.Fatal("etcd does not become full")
		}
		err = s.create(configMaps, "ConfigMap", fmt.Sprint("full-", i), map[string]any{"data": map[string]any{"a": strings.Repeat("x", 500_000)}})
	}
}

// free does what an administrator does.
func (s *smallServer) free() {
	s.Helper()
	err := s.client.Resource(configMaps).Namespace("default").DeleteCollection(s.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	var status struct{ Header struct{ Revision string } }
	must.Do(s, json.Unmarshal(s.etcd("maintenance/status", "{}"), &status))
	s.etcd("kv/compaction", fmt.Sprintf(`{"revision": %s, "physical": true}`, status.Header.Revision))
	s.etcd("maintenance/defragment", "{}")
	var list struct{ Alarms []struct{ MemberID string } }
	if err := json.Unmarshal(s.etcd("maintenance/alarm", "{}"), &list); err != nil || len(list.Alarms) == 0 {
		s.Fatalf("etcd raises no alarm: %v", err)
	}
	for _, alarm := range list.Alarms {
		s.etcd("maintenance/alarm", fmt.Sprintf(`{"action": "DEACTIVATE", "memberID": %q, "alarm": "NOSPACE"}`, alarm.MemberID))
	}
}

func (s *smallServer) etcd(path, body string) []byte {
	s.Helper()
	answer, err := http.Post(s.plane.EtcdURL()+"/v3/"+path, "application/json", bytes.NewReader([]byte(body)))
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		s.Fatalf("%s: %s %s %v", path, answer.Status, text, err)
	}
	return text
}

// A migration stops soon once etcd is full, whether a command or the operator runs it. Once there is space again, it
// finishes.
func TestMigrateFull(t *testing.T) {
	t.Parallel()
	s := newSmallServer(t)
	const objects = 30
	for i := range objects {
		old := things.GroupResource().WithVersion("v1beta1")
		must.Do(t, s.create(old, "Thing", fmt.Sprint("t", i), map[string]any{"spec": map[string]any{"a": "1"}}))
	}
	k := &kind{t: t, group: things.Group}
	must.Do(t, controlplane.InstallCRDs(t.Context(), s.plane.Config(), k.crd("v1beta1", "v1!")))
	m := k.migration(s.client)
	m.Progress = func(p migrate.Progress) {
		if p.Done == 5 {
			s.fill()
		}
	}
	p, r, err := run(t, m)
	var failing *migrate.FailingError
	if !errors.As(err, &failing) || !strings.Contains(err.Error(), "migrate again: etcdserver: mvcc: database space exceeded") {
		t.Errorf("the error is %v", err)
	}
	if r.Rewritten != 5 || r.Refused != 10 || r.Trimmed {
		t.Errorf("the result is %+v", r)
	}

	recorder := events.NewFakeRecorder(10)
	auto := &migrate.Auto{
		Client: s.client, Leads: func() bool { return true }, Log: testr.New(t),
		Recorder: func(string) events.EventRecorder { return recorder },
	}
	must.Do(t, consider(t, s.client, auto, k))
	if text := <-recorder.Events; !strings.Contains(text, "MigrationFailed the migration stopped") {
		t.Errorf("the event is %q", text)
	}

	s.free()
	m.Progress = nil
	if r, err := m.Run(t.Context(), p); err != nil || !r.Trimmed || r.Rewritten != objects {
		t.Errorf("after there is space, the result is %+v: %v", r, err)
	}
}
