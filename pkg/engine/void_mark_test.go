package engine_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

const madeUp = "11111111-1111-1111-1111-111111111111"

// remark writes an owner annotation as someone, with a wrong value of the data.
func remark(t *testing.T, ns, object, name, mark string) {
	t.Helper()
	testkit.Patch(t, configMaps, ns, object, "somebody", `{"data":{"key":"bad"},"metadata":{"annotations":{"`+name+`.example.com/owner":"`+mark+`"}}}`)
}

// reapply is remark by a forced server-side apply.
func reapply(t *testing.T, ns, object, name, mark string) {
	t.Helper()
	testkit.Apply(t, ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: `+object+`, annotations: {`+name+`.example.com/owner: "`+mark+`"}}, data: {key: bad}}`)
}

// An owner annotation that names nobody counts as one that someone has removed: whatever it names, whoever wrote it and
// whenever, the object is repaired, and goes when nothing wants it any more. One that names an upstream that exists is
// a conflict.
func TestMarkOfNobody(t *testing.T) {
	t.Parallel()
	const status, report = "  downstreams: .status.downstreams\n", "    drift: {policy: Report}\n"
	for _, row := range []struct {
		reason, mark string
		write        func(t *testing.T, ns, object, name, mark string)
		stopped      bool // it is written while no process runs
		conflict     bool
	}{
		{reason: "no upstream of that name exists", mark: "NS/nobody/" + madeUp},
		{reason: "another field manager applies it", mark: "NS/nobody/" + madeUp, write: reapply},
		{reason: "in another namespace, which is not watched", mark: "default/nobody/" + madeUp},
		{reason: "in no namespace", mark: "/nobody/" + madeUp},
		{reason: "in a namespace that does not exist", mark: "no-such-namespace/nobody/" + madeUp},
		{reason: "a name that no object can have", mark: "NS/100% nobody/" + madeUp},
		{reason: "a namespace that cannot exist", mark: "../nobody/" + madeUp},
		{reason: "the name of another upstream, with a uid that it does not have", mark: "NS/other/" + madeUp},
		{reason: "the name of its own upstream, with a uid that it does not have", mark: "NS/a/" + madeUp},
		{reason: "the upstream is outside of what the watch selects, with a uid that it does not have", mark: "NS/unlabeled/" + madeUp},
		{reason: "written while no process runs: the status is the witness", mark: "NS/nobody/" + madeUp, stopped: true},
		{reason: "applied while no process runs", mark: "NS/nobody/" + madeUp, stopped: true, write: reapply},
		{reason: "another upstream, which exists", mark: "NS/other/UID-other", conflict: true},
		{reason: "an upstream that the watch does not show, which exists", mark: "NS/unlabeled/UID-unlabeled", conflict: true},
	} {
		t.Run(row.reason, spacedTwice(func(t *testing.T, ns, at, name string) {
			conf := elsewhere(fill(widgetConfig, ns, name), at, ns)
			conf = replaceOnce(t, conf, "namespaces: ["+ns+"]}", "namespaces: ["+ns+"], labelSelector: {matchLabels: {team: x}}}")
			labeled := func(up, spec string) *unstructured.Unstructured {
				return testkit.Apply(t, ns, strings.Replace(widget(up, spec), "{name: "+up+"}", "{name: "+up+", labels: {team: x}}", 1))
			}
			other := labeled("other", `{name: other, data: {key: other}}`)
			unlabeled := testkit.Apply(t, ns, widget("unlabeled", `{data: {key: none}}`))
			labeled("a", `{name: a, namespace: `+at+`, data: {key: value}}`)
			mark := strings.NewReplacer("NS", ns, "UID-other", string(other.GetUID()), "UID-unlabeled", string(unlabeled.GetUID())).Replace(row.mark)
			operator, counter := startCounted(t, conf)
			made := waitData(t, at, "a", "key", "value")
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			if row.write == nil {
				row.write = remark
			}
			if row.stopped {
				operator.halt()
			}
			row.write(t, at, "a", name, mark)
			if row.stopped {
				start(t, counter.Wrap(testkit.Config(t)), conf)
			}
			if row.conflict {
				eventuallyCondition(t, ns, "a", "False", "Conflict", "exists and belongs to "+mark[:strings.LastIndex(mark, "/")])
				waitData(t, at, "a", "key", "bad")
				return
			}
			waitData(t, at, "a", "key", "value")
			mustBeSame(t, configMaps, made, "it was repaired")
			own := ns + "/a/"
			waitThat(t, configMaps, at, "a", func(u *obj) bool {
				now := u.GetAnnotations()[name+".example.com/owner"]
				return strings.HasPrefix(now, own) && !strings.HasSuffix(now, madeUp)
			})
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			quiet(t, counter)
		}))
	}
	for _, row := range []struct{ reason, status, downstream string }{
		{"the status records it", status, report},
		{"the process alone remembers it", "", report},
		{"the object is to be released", status, report + "    deletionPolicy: Orphan\n"},
	} {
		t.Run("at deletion, "+row.reason, spacedTwice(func(t *testing.T, ns, at, name string) {
			conf := elsewhere(fill(widgetConfig, ns, name), at, ns)
			conf = strings.NewReplacer("    targetNamespaces:", row.downstream+"    targetNamespaces:", status, row.status).Replace(conf)
			start(t, testkit.Config(t), conf).ready()
			applyReady(t, ns, "a", `{name: a, namespace: `+at+`, data: {key: value}}`)
			remark(t, at, "a", name, ns+"/nobody/"+madeUp)
			deleteAndWait(t, widgets, ns, "a")
			u := testkit.Find(t, configMaps, at, "a")
			if released := u != nil && len(u.GetAnnotations())+len(u.GetLabels()) == 0; strings.Contains(row.downstream, "Orphan") && !released || u != nil && !released {
				t.Errorf("it is left as %v", u)
			}
		}))
	}
}

// Where nobody knows whether the upstream exists that an owner annotation names, it keeps its rights, and asking is
// bounded.
func TestMarkOfAnUnknown(t *testing.T) {
	inSpaces(t, func(t *testing.T, ns, at, name string) {
		counter := testkit.NewCounter()
		faults := testkit.NewFaults()
		unknown := faults.Answer(http.StatusForbidden, func(r *http.Request) bool {
			return strings.HasSuffix(r.URL.Path, "/widgets") && strings.Contains(r.URL.Query().Get("fieldSelector"), "metadata.name=nobody")
		})
		start(t, counter.Wrap(faults.Wrap(testkit.Config(t))), patient(elsewhere(fill(widgetConfig, ns, name), at, ns))).ready()
		applyReady(t, ns, "a", `{name: a, namespace: `+at+`, data: {key: value}}`)
		remark(t, at, "a", name, ns+"/nobody/"+madeUp)
		eventuallyCondition(t, ns, "a", "False", "Conflict", "exists and belongs to "+ns+"/nobody")
		quiet(t, counter)
		for i := range 5 { // events of the object make no requests
			testkit.Patch(t, configMaps, at, "a", "somebody", fmt.Sprintf(`{"data":{"more":"%d"}}`, i))
		}
		quiet(t, counter)
		if n := unknown.Hits(); n == 0 || n > 3 {
			t.Errorf("%d requests ask for the upstream: %v", n, counter.Snapshot())
		}
		waitData(t, at, "a", "key", "bad")
	})
}

// With ownership: Fields, the annotation of an upstream that is gone holds up nobody, and our own marks do not conflict
// with whoever wrote them last.
func TestFieldsMarkOfNobody(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason, force string
		write         func(t *testing.T, ns, object, name, mark string)
		running       bool
	}{
		{"somebody replaces the mark", "    force: true\n", remark, true},
		{"somebody replaces the mark, without force", "", marksOnly, true},
		{"the object comes from an export", "    force: true\n", restored, false},
		{"the object comes from an export, without force", "", restored, false},
		{"another field manager applies the marks of an export", "", reappliedMarks, false},
	} {
		for _, who := range []string{"other", "w"} {
			t.Run(row.reason+", of "+who, spaced(func(t *testing.T, ns, name string) {
				mark := ns + "/" + who + "/" + madeUp
				makeTheirs(t, ns, "shared")
				if !row.running {
					row.write(t, ns, "shared", name, mark)
				}
				testkit.Apply(t, ns, widget("w", "{name: shared, data: {key: one}}"))
				counter := testkit.NewCounter()
				start(t, counter.Wrap(testkit.Config(t)), contributing(ns, name, row.force))
				waitData(t, ns, "shared", "key", "one")
				eventuallyCondition(t, ns, "w", "True", "", "")
				if row.running {
					row.write(t, ns, "shared", name, mark)
					waitThat(t, configMaps, ns, "shared", func(u *obj) bool {
						return u.GetAnnotations()[name+".example.com/owner"] != mark && dataIn(u, "key") == "one"
					})
					eventuallyCondition(t, ns, "w", "True", "", "")
				}
				quiet(t, counter)
				deleteAndWait(t, widgets, ns, "w")
				if u := testkit.Get(t, configMaps, ns, "shared"); u.Object["data"].(map[string]any)["key"] != nil {
					t.Errorf("it is left as %s", jsonOf(u))
				}
			}))
		}
	}
}

// marksOnly is remark without the data.
func marksOnly(t *testing.T, ns, object, name, mark string) {
	t.Helper()
	testkit.Patch(t, configMaps, ns, object, "somebody", `{"metadata":{"annotations":{"`+name+`.example.com/owner":"`+mark+`"}}}`)
}

// restored makes the object again as a backup tool does.
func restored(t *testing.T, ns, object, name, mark string) {
	t.Helper()
	testkit.Delete(t, configMaps, ns, object)
	post(t, ns, "restore", `{apiVersion: v1, kind: ConfigMap, metadata: {name: `+object+`, annotations: {`+name+`.example.com/owner: "`+mark+`", `+name+`.example.com/hash: old}}, data: {theirs: "1"}}`)
}

// reappliedMarks has another field manager apply our marks.
func reappliedMarks(t *testing.T, ns, object, name, mark string) {
	t.Helper()
	testkit.Apply(t, ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: `+object+`, labels: {app: theirs}, annotations: {`+name+`.example.com/owner: "`+mark+`"}}, data: {theirs: "1"}}`)
}

// Rows are upstreams like any other: a mark that names a row that the query does not return is repaired.
func TestMarkOfNoRow(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		d := newDatabase(t)
		d.add(1, 2)
		_, counter := startCounted(t, d.config(ns, name))
		waitApps(t, ns, name, 1, 2)
		quiet(t, counter)
		remark(t, ns, app(1), name, "/nobody/"+name+":nobody")
		waitData(t, ns, app(1), "key", "one")
		other := testkit.Get(t, configMaps, ns, app(2)).GetAnnotations()[name+".example.com/owner"]
		quiet(t, counter)
		remark(t, ns, app(1), name, other)
		quiet(t, counter)
		waitData(t, ns, app(1), "key", "bad")
	})
}
